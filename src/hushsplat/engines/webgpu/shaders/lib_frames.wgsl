// The frame of each Gaussian's last win, 16 bits each: 1 .. 65535 and then from 1 on again, 0: never.
const FRAMES: u32 = 65535u;

fn frame_shift(place: u32) -> u32 {
    return 16u * (place & 1u);
}
