"""Small captures written by the tests' own code, independent of the readers."""

import json
import struct

import numpy as np
from PIL import Image
from scipy.spatial.transform import Rotation

# name: (id, number of focal lengths, values of the lens)
COLMAP_MODELS = {
    "SIMPLE_PINHOLE": (0, 1, []),
    "PINHOLE": (1, 2, []),
    "SIMPLE_RADIAL": (2, 1, [0.05]),
    "RADIAL": (3, 1, [0.05, -0.02]),
    "OPENCV": (4, 2, [0.05, -0.02, 0.003, -0.002]),
    "OPENCV_FISHEYE": (5, 2, [0.05, -0.02, 0.01, -0.01]),
    "FULL_OPENCV": (6, 2, [0.05, -0.02, 0.003, -0.002, 0.01, 0.02, -0.01, 0.01]),
    "FOV": (7, 2, [0.7]),
    "SIMPLE_RADIAL_FISHEYE": (8, 1, [0.05]),
    "RADIAL_FISHEYE": (9, 1, [0.05, -0.02]),
    "THIN_PRISM_FISHEYE": (10, 2, [0.05, -0.02, 0.003, -0.002, 0.01, -0.01, 0.002, 0.001]),
    "SIMPLE_FISHEYE": (14, 1, []),
    "FISHEYE": (15, 2, []),
}
WIDTH, HEIGHT, FOCAL = 64, 48, 60.0


def pattern(x, y):
    """A colour for each direction: smooth, bright, with a period of about 16 px in the pictures here."""
    phase = np.stack([9 * x + 2 * y, 8 * y - 3 * x, 6 * (x + y)], axis=-1) * 2.5
    return 0.5 + 0.4 * np.sin(phase)


def pixel_directions(width, height, fx, fy, cx, cy):
    x, y = np.meshgrid((np.arange(width) + 0.5 - cx) / fx, (np.arange(height) + 0.5 - cy) / fy)
    return np.stack([x, y], axis=-1)


def save_image(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.round(values * 255).astype(np.uint8)).save(path)


def save_plain_picture(path, width=WIDTH, height=HEIGHT):
    directions = pixel_directions(width, height, width, width, width / 2, height / 2)
    save_image(path, pattern(directions[..., 0], directions[..., 1]))


def poses(n, seed=0):
    """World from camera, OpenCV axes."""
    rng = np.random.default_rng(seed)
    matrices = np.tile(np.eye(4), (n, 1, 1))
    matrices[:, :3, :3] = Rotation.random(n, random_state=seed).as_matrix()
    matrices[:, :3, 3] = rng.normal(size=(n, 3))
    return matrices


def model_parameters(model):
    _, focals, lens = COLMAP_MODELS[model]
    return [*[FOCAL, FOCAL + 2][:focals], WIDTH / 2 + 1, HEIGHT / 2 - 1, *lens]


def colmap_poses(world_from_camera):
    camera_from_world = np.linalg.inv(world_from_camera)
    quaternions = np.roll(Rotation.from_matrix(camera_from_world[:, :3, :3]).as_quat(), 1, axis=1)
    return quaternions, camera_from_world[:, :3, 3]


def points(m=5):
    rng = np.random.default_rng(5)
    return rng.normal(size=(m, 3)), rng.integers(0, 256, size=(m, 3))


def names(n):
    return [f"view {i:02d}.png" for i in range(n)]


def colmap_bytes(n=9, model="SIMPLE_RADIAL", world_from_camera=None):
    """The three binary files."""
    quaternions, translations = colmap_poses(poses(n) if world_from_camera is None else world_from_camera)
    parameters = model_parameters(model)
    cameras = struct.pack("<QIiQQ", 1, 7, COLMAP_MODELS[model][0], WIDTH, HEIGHT)
    cameras += struct.pack(f"<{len(parameters)}d", *parameters)
    images = struct.pack("<Q", n)
    for i, name in reversed(list(enumerate(names(n)))):  # not in the order of names
        images += struct.pack("<I7dI", i + 1, *quaternions[i], *translations[i], 7) + name.encode() + b"\0"
        images += struct.pack("<Q", i) + struct.pack("<ddq", 1.0, 2.0, -1) * i
    positions, colors = points()
    points3d = struct.pack("<Q", len(positions))
    for i in range(len(positions)):
        points3d += struct.pack("<Q3d3BdQ", i, *positions[i], *colors[i], 0.5, i) + struct.pack("<II", 1, 2) * i
    return {"cameras.bin": cameras, "images.bin": images, "points3D.bin": points3d}


def colmap_texts(n=9, model="SIMPLE_RADIAL"):
    """The same model as text."""
    quaternions, translations = colmap_poses(poses(n))

    def numbers(*values):
        return " ".join(repr(float(value)) for value in values)

    cameras = f"# a comment\n7 {model} {WIDTH} {HEIGHT} {numbers(*model_parameters(model))}\n"
    images = "# IMAGE_ID ...\n# POINTS2D ...\n"
    for i, name in reversed(list(enumerate(names(n)))):
        images += f"{i + 1} {numbers(*quaternions[i], *translations[i])} 7 {name}\n"
        images += " ".join(["1.0 2.0 -1"] * i) + "\n"  # empty for the image that sees nothing
    positions, colors = points()
    points3d = "# POINT3D_ID ...\n"
    for i in range(len(positions)):
        r, g, b = colors[i]
        points3d += f"{i} {numbers(*positions[i])} {r} {g} {b} 0.5" + " 1 2" * i + "\n"
    return {name: text.encode() for name, text in zip(TEXT_NAMES, (cameras, images, points3d), strict=True)}


TEXT_NAMES = ("cameras.txt", "images.txt", "points3D.txt")


def write_colmap(folder, files, n=9, images="images", size=(WIDTH, HEIGHT)):
    model = folder / "sparse" / "0"
    model.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (model / name).write_bytes(content)
    for name in names(n):
        save_plain_picture(folder / images / name, *size)
    return folder


def transforms(n=9, **shared):
    """A transforms.json as an object; OpenGL axes."""
    opengl = poses(n) * np.array([1.0, -1.0, -1.0, 1.0])
    frames = [
        {"file_path": f"images/{name}", "transform_matrix": matrix.tolist()}
        for name, matrix in zip(names(n), opengl, strict=True)
    ]
    return {"fl_x": FOCAL, "fl_y": FOCAL + 2, "cx": 33.0, "cy": 23.0, "w": 64.0, "h": 48.0, **shared, "frames": frames}


def write_transforms(folder, content, name="transforms.json", n=9, photographs=True):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    if photographs:
        for photograph in names(n):
            save_plain_picture(folder / "images" / photograph)
    return folder


def camera_list(n=9, **changes):
    frames = [
        {"file": name, "viewmat": np.linalg.inv(matrix).tolist()}
        for name, matrix in zip(names(n), poses(n), strict=True)
    ]
    shared = {"width": WIDTH, "height": HEIGHT, "fx": FOCAL, "fy": FOCAL + 2, "cx": 33.0, "cy": 23.0, "k1": 0.01}
    return {**shared, **changes, "frames": frames}


def llff_rows(n=9):
    matrices = poses(n)
    right, down, forward, position = (matrices[:, :3, i] for i in range(4))
    size = np.tile([float(HEIGHT), float(WIDTH), FOCAL], (n, 1))
    table = np.stack([down, right, -forward, position, size], axis=2).reshape(n, 15)
    return np.concatenate([table, np.tile([0.1, 10.0], (n, 1))], axis=1)
