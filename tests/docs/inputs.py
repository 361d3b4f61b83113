# The files that README and the manual speak of: small, made here, of the names, types and shapes that the text uses.
import array
import json
import math
import os
import random
import shutil
import stat
import struct

SEED = 20261126


def smooth(shape, seed=SEED, offset=280.0):
    """A field of a few waves and little noise, slowest axis first, as a list of floats."""
    source = random.Random(seed)
    phases = [source.random() * 6 for _ in shape]
    lines = [[math.sin(0.11 * i * (axis + 1) / len(shape) + phases[axis]) for i in range(extent)]
             for axis, extent in enumerate(shape)]
    values = [offset]
    for axis, extent in enumerate(shape):
        line = lines[axis]
        values = [value + 5 * line[i] for value in values for i in range(extent)]
    return [value + 1e-3 * source.random() for value in values]


def write_raw(path, shape, code="f", seed=SEED):
    with open(path, "wb") as file:
        array.array(code, smooth(shape, seed)).tofile(file)


def write_npy(path, shape, seed=SEED):
    header = str({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        array.array("f", smooth(shape, seed)).tofile(file)


def write_safetensors(path, seed):
    """A training state: weights and moments that move little from step to step."""
    tensors = {"embed.weight": (256, 64), "layer.0.weight": (96, 96), "layer.0.bias": (96,)}
    header, data = {}, b""
    for number, (name, shape) in enumerate(tensors.items()):
        source = random.Random(number)
        step = random.Random(seed * 100 + number)
        values = array.array("f", [source.gauss(0, 0.02) + step.gauss(0, 1e-5) for _ in range(math.prod(shape))])
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_images(folder, rows, columns, images):
    """Ranges of a room, reflectivities, and the metadata that an Ouster sensor would give."""
    source = random.Random(SEED)
    count = images * rows * columns
    with open(os.path.join(folder, "range.u32"), "wb") as file:
        array.array("I", [4000 + 900 * (i % columns) // columns + source.randrange(20) if source.random() < 0.9 else 0
                          for i in range(count)]).tofile(file)
    with open(os.path.join(folder, "refl.u8"), "wb") as file:
        file.write(bytes(source.randrange(40) for _ in range(count)))
    with open(os.path.join(folder, "os1.json"), "w", encoding="utf-8") as file:
        json.dump({"beam_altitude_angles": [16 - i for i in range(rows)],
                   "beam_azimuth_angles": [3.2 * (1 - i % 4) for i in range(rows)],
                   "lidar_origin_to_beam_origin_mm": 15.806,
                   "lidar_to_sensor_transform": [-1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 36.18, 0, 0, 0, 1],
                   "data_format": {"columns_per_frame": columns, "pixels_per_column": rows,
                                   "pixel_shift_by_row": [2 * (3 - i % 4) for i in range(rows)]}}, file)


def make_scans(folder, frames=3):
    """velodyne/ with scans as KITTI writes them, ring after ring, timestamps.txt and poses.txt; run.mcap, a bag;
    range.u32, refl.u8 and os1.json, images of a sensor."""
    write_images(folder, 32, 64, 2)
    golden = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "bags")
    shutil.copy(os.path.join(golden, "zstd.mcap"), os.path.join(folder, "run.mcap"))
    os.mkdir(os.path.join(folder, "velodyne"))
    for frame in range(frames):
        source, values = random.Random(SEED + frame), array.array("f")
        for ring in range(24):
            elevation = 0.03 - 0.018 * ring
            for step in range(480):
                azimuth = math.pi * (1 - step / 240)
                reach = min(1.73 / math.sin(-elevation) if elevation < 0 else 60.0, 9 + 4 * math.sin(7 * azimuth))
                reach = round(reach + source.gauss(0, 0.02), 3)
                flat = reach * math.cos(elevation)
                values.extend((round(flat * math.cos(azimuth), 3), round(flat * math.sin(azimuth), 3),
                               round(reach * math.sin(elevation), 3), source.randrange(100) / 100))
        with open(os.path.join(folder, "velodyne", f"{frame:06}.bin"), "wb") as file:
            values.tofile(file)
    with open(os.path.join(folder, "timestamps.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"2011-09-26 13:02:{25 + 0.1 * frame:012.9f}\n" for frame in range(frames))
    with open(os.path.join(folder, "poses.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"1 0 0 {0.01 * frame:.3f} 0 1 0 0 0 0 1 0\n" for frame in range(frames))


def write_netcdf(path, variables):
    """Variables over (time, lat, lon); needs netCDF4."""
    import netCDF4
    shape = (8, 40, 60)
    with netCDF4.Dataset(path, "w") as data:
        for name, extent in zip(("time", "lat", "lon"), shape):
            data.createDimension(name, extent)
            data.createVariable(name, "f8", (name,))[:] = list(range(extent))
        data["time"].units, data["lat"].units, data["lon"].units = "days since 2000-01-01", "degrees_north", "degrees_east"
        for number, name in enumerate(variables):
            variable = data.createVariable(name, "f4", ("time", "lat", "lon"), fill_value=-999.0)
            values = smooth(shape, SEED + number)
            values[::97] = [-999.0] * len(values[::97])
            import numpy
            variable[:] = numpy.ma.masked_equal(numpy.array(values, "f4").reshape(shape), -999.0)
            variable.units = "K"


def write_program(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def make_run(folder, has_netcdf):
    """A folder of arrays below `folder`, another one in it."""
    os.makedirs(os.path.join(folder, "run", "later"))
    write_npy(os.path.join(folder, "run", "first.npy"), (20, 30, 40))
    write_raw(os.path.join(folder, "run", "later", "second_20x30x40.f32"), (20, 30, 40))
    if has_netcdf:
        write_netcdf(os.path.join(folder, "run", "later", "third.nc"), ("tas",))


def make_readme(folder, has_netcdf):
    def path(name):
        return os.path.join(folder, name)

    write_raw(path("temperature.f32"), (98, 128, 256))
    write_raw(path("u.f64"), (64, 128, 128), "d")
    write_npy(path("field.npy"), (48, 96, 96))
    write_raw(path("in.f32"), (1000, 1000))
    write_raw(path("grid_64x96x96.f32"), (64, 96, 96))
    write_raw(path("a.f32"), (1000, 1000))
    write_raw(path("b.f32"), (1000, 1000), seed=SEED + 1)
    write_raw(path("field.f32"), (50, 100, 100))
    make_run(folder, has_netcdf)
    for seed, name in enumerate(("model", "step600", "step700")):
        write_safetensors(path(name + ".safetensors"), seed)
    if has_netcdf:
        write_netcdf(path("weather.nc"), ("T2",))
        write_netcdf(path("model.nc"), ("tas", "ps"))


def make_estimates(folder, has_netcdf):
    if has_netcdf:
        write_netcdf(os.path.join(folder, "model.nc"), ("tas", "ps"))
    write_raw(os.path.join(folder, "temperature_50x100x100.f32"), (50, 100, 100))
    write_raw(os.path.join(folder, "in.raw"), (50, 100, 100))
    for step in (1, 2):
        write_raw(os.path.join(folder, f"waves_t{step:04d}_20x40x50.f32"), (20, 40, 50), seed=SEED + step)


def make_manual(folder, has_netcdf):
    def path(name):
        return os.path.join(folder, name)

    write_raw(path("temperature_50x100x100.f32"), (50, 100, 100))
    write_raw(path("in.raw"), (50, 100, 100))
    write_raw(path("field_64x96x96.f32"), (64, 96, 96))
    with open(path("bounds.txt"), "w", encoding="utf-8") as file:
        file.write("tas abs 0.01  # kelvin\nps rel 1e-4\n")
    if has_netcdf:
        write_netcdf(path("model.nc"), ("tas", "ps"))
    make_run(folder, has_netcdf)
    write_raw(path("simulated.f64"), (64, 128, 128), "d")
    write_program(path("simulate"), "#!/bin/sh\ncat simulated.f64\n")
