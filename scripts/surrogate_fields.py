#!/usr/bin/env python3
"""Writes the arrays that the quality model is trained on: generated fields and steps of recorded ones.

usage: scripts/surrogate_fields.py OUT [FOLDER_OF_FIELDS]

Names are APPLICATION-NAME_tSTEP_SHAPE.TYPE. Early steps of a name train, later ones test. Recorded fields are cut along
their first axis into steps of at most 2^18 values; a field without a time axis is one step. Larger ones stand there once
more as NAME-large: the steps that train as one array, those that test as another. The same arguments give the same
bytes.
"""
import os
import re
import sys

import numpy as np

SEED = 20261127
MOST = 1 << 18


def write(out, name, step, values):
    kinds = {"float32": "f32", "float64": "f64", "float16": "f16", "int16": "i16", "int32": "i32", "uint8": "u8"}
    shape = "x".join(map(str, values.shape))
    path = os.path.join(out, f"{name}_t{step:04d}_{shape}.{kinds[values.dtype.name]}")
    np.ascontiguousarray(values).tofile(path)


def spectral(rng, shape, slope, cut=None):
    """Gaussian field whose spectral density falls as wavenumber to the power -slope; 0 mean, unit deviation."""
    waves = np.zeros(shape)
    for axis, extent in enumerate(shape):
        form = [1] * len(shape)
        form[axis] = extent
        waves = waves + (np.fft.fftfreq(extent) * max(shape)).reshape(form) ** 2
    waves = np.sqrt(waves)
    waves.flat[0] = np.inf
    amplitude = waves ** (-slope / 2)
    if cut:
        amplitude = amplitude * np.exp(-(waves / cut) ** 2)
    field = np.fft.ifftn(np.fft.fftn(rng.standard_normal(shape)) * amplitude).real
    return field / field.std()


SHAPES = {1: (65536,), 2: (320, 400), 3: (40, 64, 72)}


def generated(out):
    rng = np.random.default_rng(SEED)
    for rank, shape in SHAPES.items():
        for slope in (1.0, 2.0, 3.0, 4.0, 6.0):
            for step in range(2):
                write(out, f"made-power{rank}d{slope:.0f}", step, spectral(rng, shape, slope + rank - 1).astype("f4"))
        for step in range(2):
            noise = rng.standard_normal(shape)
            smooth = spectral(rng, shape, 4 + rank, cut=12)
            rough = spectral(rng, shape, 1 + rank)
            write(out, f"made-noisy{rank}d", step, (smooth + 1e-3 * noise).astype("f4"))
            write(out, f"made-noise{rank}d", step, noise.astype("f4"))
            write(out, f"made-exp{rank}d", step, np.exp(3 * rough).astype("f4"))
            write(out, f"made-patches{rank}d", step, np.where(smooth > 0.5, rough, 0.0).astype("f4"))
            write(out, f"made-steps{rank}d", step, np.where(smooth > 0, 3.0, -2.0).astype("f4") + (0.05 * rough).astype("f4"))
            write(out, f"made-double{rank}d", step, spectral(rng, shape, 2 + rank).astype("f8"))
            land = (smooth + 0.3 * rough).astype("f4")
            land[spectral(rng, shape, 4 + rank) > 0.6] = np.nan
            write(out, f"made-land{rank}d", step, land)
            write(out, f"made-counts{rank}d", step, np.round(200 * rough).astype("i2"))
            write(out, f"made-image{rank}d", step, np.clip(128 + 50 * rough, 0, 255).astype("u1"))
            write(out, f"made-short{rank}d", step, (smooth + 0.1 * rough).astype("f2"))


LARGE = {1: (600000,), 2: (700, 900), 3: (72, 88, 104)}


def generated_large(out):
    rng = np.random.default_rng(SEED + 1)
    for rank, shape in LARGE.items():
        for slope in (2.0, 4.0):
            write(out, f"made-large{rank}d{slope:.0f}", 0, spectral(rng, shape, slope + rank - 1).astype("f4"))
        smooth = spectral(rng, shape, 4 + rank, cut=12)
        rough = spectral(rng, shape, 1 + rank)
        noise = rng.standard_normal(shape)
        write(out, f"made-largenoisy{rank}d", 0, (smooth + 1e-3 * noise).astype("f4"))
        write(out, f"made-largepatches{rank}d", 0, np.where(smooth > 0.5, rough, 0.0).astype("f4"))


# Recorded fields whose first axis is time, or a stack that is read one after another.
SERIES = {"cam_trefht_yearly", "ice_fraction", "levitus_temp_monthly", "canesm5_siconc", "gfdl_o3", "md_adk_xyz",
          "cam_ts_hourly6", "mri_t1_mni152", "mitgcm_convection_U", "sperr_wmag", "sperr_vorticity3d"}
TYPES = {"f32": "<f4", "f64": "<f8", "i16": "<i2", "u8": "u1"}


def recorded(out, folder):
    for file in sorted(os.listdir(folder)):
        match = re.fullmatch(r"(.+)_(\d+(?:x\d+)*)\.(f32|f64|i16|u8)", file)
        if not match:
            continue
        name, shape = match[1], tuple(map(int, match[2].split("x")))
        values = np.fromfile(os.path.join(folder, file), TYPES[match[3]]).reshape(shape)
        application = name.split("_")[0]
        label = f"{application}-{name}"
        axis = 1 if name == "cam_ts_hourly6" else 0
        steps = 4 if axis else max(2, min(6, values.shape[0] // 4)) if name in SERIES else 1
        parts = np.array_split(values, steps, axis=axis)
        if values.size > MOST:
            early = steps - max(steps // 3, 1) if steps > 1 else 1
            wrote_early = False
            for step, whole in enumerate([parts[:early], parts[early:]]):
                if not whole or (step > 0 and not wrote_early):
                    continue
                part = np.concatenate(whole, axis=axis)
                if step > 0 or part.size > MOST:
                    write(out, label + "-large", step, part)
                    wrote_early = True
        for step, part in enumerate(parts):
            while part.size > MOST:  # the middle half of the longest axis
                axis = int(np.argmax(part.shape))
                quarter = part.shape[axis] // 4
                part = np.take(part, range(quarter, quarter + part.shape[axis] // 2), axis=axis)
            write(out, label, step, part)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    generated(sys.argv[1])
    generated_large(sys.argv[1])
    if len(sys.argv) == 3:
        recorded(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
