// Who was seen becomes what was seen: means over the samples of colour, depth, alpha and the neural view.
// Runs once for each sample and each page; the first run starts the sums, the last one divides.
//!include lib_color
//!include lib_picture
//!include lib_each_pixel

struct Turn {
    samples: u32,
    first: u32,   // of all runs
    opening: u32, // the first run of a sample: it adds the background
    last: u32,    // of all runs
}

override PAYLOAD: bool = false;

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<uniform> turn: Turn;
@group(0) @binding(3) var<storage, read> fixed: array<u32>;
@group(0) @binding(4) var<storage, read> sh: array<u32>;
@group(0) @binding(5) var<storage, read> payload: array<f32>;              // ten floats a Gaussian
@group(0) @binding(6) var<storage, read> place: array<i32>;
@group(0) @binding(7) var<storage, read> depth: array<f32>;
@group(0) @binding(8) var<storage, read_write> observed: array<vec4f>;     // RGB, depth
@group(0) @binding(9) var<storage, read_write> alpha: array<f32>;
@group(0) @binding(10) var<storage, read_write> neural_view: array<vec4f>; // V0..V3

fn payload_vector(at: u32) -> vec3f {
    return vec3f(payload[at], payload[at + 1u], payload[at + 2u]);
}

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    var sum = vec4f(0.0);
    var hits = 0.0;
    var seen = vec4f(0.0);
    if (turn.first == 0u) {
        sum = observed[at];
        hits = alpha[at];
        if (PAYLOAD) {
            seen = neural_view[at];
        }
    }
    let winner = place[at];
    let index = u32(winner) - page.base;
    if (winner < 0) {
        if (turn.opening == 1u) {
            sum += vec4f(view.back_r, view.back_g, view.back_b, 0.0);
        }
    } else if (index < page.count) {
        sum += vec4f(color_of(index), depth[at]);
        hits += 1.0;
        if (PAYLOAD) {
            let first = 10u * index;
            let up = abs(dot(payload_vector(first), -vec3f(view.r10, view.r11, view.r12)));
            let right = abs(dot(payload_vector(first + 3u), vec3f(view.r00, view.r01, view.r02)));
            let forward = abs(dot(payload_vector(first + 6u), vec3f(view.r20, view.r21, view.r22)));
            seen += vec4f(up / depth[at], right / depth[at], forward, payload[first + 9u]);
        }
    }
    if (turn.last == 1u) {
        let share = 1.0 / f32(turn.samples);
        sum = vec4f(sum.xyz * share, sum.w / max(hits, 1.0));
        hits *= share;
        seen *= share;
    }
    observed[at] = sum;
    alpha[at] = hits;
    if (PAYLOAD) {
        neural_view[at] = seen;
    }
}
