"""Fits as somebody might send them who means harm: each is sealed, and breaks one rule."""

import json
import shutil
import zlib

import h5py
import numpy as np

import countveil as cv
from countveil.common import fit_files
from countveil.privacy import _archive

VICTIM = "root:secret-of-the-reader:0:0"


def small_fit(path):
    """A small fit with labelled words, as a file at this path."""
    counts = np.random.default_rng(1).poisson(1.0, (12, 9))
    release = cv.privatize(counts, cv.PrivacyLevel(1, 1), column_labels=[f"word{i}" for i in range(9)])
    cv.TopicModel(3, draws=10, tune=5, chains=2, seed=1, threads=1, progress=False).fit(release).save(path)
    return path


def changed(valid, target, change):
    """A copy of a fit that ``change`` edits as an open HDF5 file, sealed again."""
    shutil.copyfile(valid, target)
    with open(target, "rb+") as file:
        file.truncate(file.seek(0, 2) - _archive.SEAL_LENGTH)
    with h5py.File(target, "a") as file:
        change(file)
    fit_files.seal(target)
    return target


def replaced(file, path, **how):
    """An array of the file anew, with the same dimensions."""
    scales = [dimension[0] if len(dimension) else None for dimension in file[path].dims]
    is_scale = file[path].is_scale
    del file[path]
    made = file.create_dataset(path, **how)
    if is_scale:
        made.make_scale(path.rpartition("/")[2])
    for dimension, scale in zip(made.dims, scales, strict=False):
        if scale is not None:
            dimension.attach_scale(scale)
    return made


def stated(name, edit):
    """A change of a fact in JSON at the root."""

    def change(file):
        value = json.loads(file.attrs[name])
        edit(value)
        file.attrs[name] = json.dumps(value)

    return change


def fact(name, value):
    """A change of an attribute of the root; None takes it away."""

    def change(file):
        if name in file.attrs:
            del file.attrs[name]
        if value is not None:
            file.attrs[name] = value

    return change


def value_at(path, value):
    """A change of the first value of an array."""

    def change(file):
        file[path][(0,) * file[path].ndim] = value

    return change


def filled(path, value):
    """A change of all values of an array."""

    def change(file):
        file[path][...] = value

    return change


def external_storage(victim):
    """Words that are the bytes of another file."""

    def change(file):
        replaced(
            file, "posterior/word", shape=file["posterior/word"].shape, dtype="S3",
            external=[(str(victim), 0, h5py.h5f.UNLIMITED)],
        )  # fmt: skip

    return change


def external_link(victim):
    """The posterior of another file."""

    def change(file):
        del file["posterior"]
        file["posterior"] = h5py.ExternalLink(str(victim), "/posterior")

    return change


def soft_link(file):
    """An array by the name of another."""
    del file["posterior/theta"]
    file["posterior/theta"] = h5py.SoftLink("/posterior/phi")


def virtual(victim):
    """Draws that are put together from another file."""

    def change(file):
        shape = file["posterior/theta"].shape
        layout = h5py.VirtualLayout(shape=shape, dtype="f4")
        layout[...] = h5py.VirtualSource(str(victim), "posterior/theta", shape=shape)
        del file["posterior/theta"]
        file.create_virtual_dataset("posterior/theta", layout)

    return change


def never_written(file):
    """149 GiB of draws of which none is in the file."""
    replaced(file, "posterior/theta", shape=(2, 10, 12, 166_666_667), dtype="f4")


def packed_zeros(file):
    """Draws of zeros, a thousand to a byte."""
    file.create_dataset("posterior/more", shape=(2**31,), dtype="f4", chunks=(2**22,), compression="gzip")
    chunk = np.zeros(2**22, dtype="f4")
    for i in range(20):
        file["posterior/more"][i * 2**22 : (i + 1) * 2**22] = chunk


def growing(file):
    """An axis without an end, which readers fill up to the longest."""
    replaced(file, "posterior/word", data=np.arange(9), maxshape=(None,))


def one_text_many_times(file):
    """A long label to which all labels refer."""
    found = file["posterior/word"]
    found[...] = ["x" * 100_000] + ["y"] * (found.size - 1)
    offset, name = found.id.get_offset(), file.filename
    file.close()
    with open(name, "rb+") as raw:
        raw.seek(offset)
        first = raw.read(16)
        raw.seek(offset)
        raw.write(first * 9)


def foreign_filter(file):
    """Draws that a filter would have to unpack that is loaded by its number."""
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((2, 10, 3))
    made.set_filter(32_015, h5py.h5z.FLAG_OPTIONAL, ())
    del file["posterior/theta_rate"]
    space = h5py.h5s.create_simple((2, 10, 3))
    h5py.h5d.create(file["posterior"].id, b"theta_rate", h5py.h5t.IEEE_F64LE, space, made)


def references(file):
    """Words that refer to objects."""
    made = replaced(file, "posterior/word", shape=(9,), dtype=h5py.ref_dtype)
    made[0] = file["posterior/theta"].ref


def own_type(file):
    """A type of its own among the groups."""
    file["posterior/kind"] = np.dtype([("a", "i4"), ("b", "f8")])


def nested(file):
    """Groups in groups without end."""
    group = file
    for _ in range(50):
        group = group.create_group("g")


def circle(file):
    """A group that holds itself."""
    file["posterior/again"] = file["posterior"]


def scaled(file):
    """Draws that a reader would multiply."""
    file["posterior/theta"].attrs["scale_factor"] = -1.0


def without(path):
    """A change that takes something away."""

    def change(file):
        del file[path]

    return change


def whole_numbers(path):
    """A change of an array to whole numbers."""

    def change(file):
        replaced(file, path, data=np.ones(file[path].shape, dtype="i8"))

    return change


def unpacked_to_more(file):
    """One chunk of 64 numbers that unpacks to 50 MB."""
    created = file.create_dataset("posterior/more", shape=(64,), dtype="f8", chunks=(64,), compression="gzip")
    created.id.write_direct_chunk((0,), zlib.compress(bytes(50_000_000)))


def packed_twice(file):
    """Deflate within deflate."""
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((64,))
    plan.set_deflate(9)
    plan.set_deflate(9)
    space = h5py.h5s.create_simple((64,))
    h5py.h5d.create(file.id, b"posterior/more", h5py.h5t.IEEE_F64LE, space, plan)
    file["posterior/more"][...] = 1.0


def changes(victim):
    """Every hostile change by name, with what its refusal says; ``victim`` is a file of the reader's."""
    return {
        "external storage": (external_storage(victim), "external storage at posterior/word"),
        "an external link": (external_link(victim), "link to elsewhere at posterior"),
        "a soft link": (soft_link, "link to elsewhere at posterior/theta"),
        "a virtual array": (virtual(victim), "virtual array at posterior/theta"),
        "149 GiB never written": (never_written, "got 0 bytes that declare 160000000320"),
        "packed zeros": (packed_zeros, "declare 8589934592"),
        "an axis without end": (growing, "fixed sizes"),
        "one text many times": (one_text_many_times, "every text once"),
        "a chunk of more": (unpacked_to_more, "a chunk that unpacks to more at posterior/more"),
        "packed twice": (packed_twice, "HDF5 filters [1, 1] at posterior/more"),
        "a foreign filter": (foreign_filter, "HDF5 filters [32015] at posterior/theta_rate"),
        "references": (references, "HDF5 type class 7 at posterior/word"),
        "a type of its own": (own_type, "named type at posterior/kind"),
        "nested groups": (nested, "4 deep"),
        "a circle": (circle, "got posterior/again again"),
        "a scale": (scaled, "'scale_factor' at posterior/theta"),
        "NaN": (value_at("posterior/theta", np.nan), "at least 0 at posterior/theta, got nan"),
        "rates of zero": (value_at("posterior/theta_rate", 0.0), "at least 1e-30 at posterior/theta_rate, got 0"),
        "infinity": (value_at("posterior/phi_rate", np.inf), "posterior/phi_rate, got inf"),
        "a negative factor": (value_at("posterior/phi", -1.0), "posterior/phi, got -1.0"),
        "whole numbers": (whole_numbers("posterior/theta"), "floating-point numbers at posterior/theta"),
        "no posterior": (without("posterior"), "the group posterior, got none"),
        "no noise": (without("constant_data"), "the group constant_data, got none"),
        "no factor": (without("posterior/theta"), "the factor theta, got none"),
        "no seed": (fact("seed", None), "its seed, got nothing"),
        "a seed below zero": (fact("seed", -5), "at least 0 as its seed, got -5"),
        "a seed in other digits": (fact("seed", "\u0663"), "at least 0 as its seed"),
        "endless seconds": (fact("seconds", np.inf), "a finite number of seconds, got inf"),
        "half simulated": (fact("simulated_noise", 7), "its simulated_noise as 0 or 1, got 7"),
        "no noisy totals": (fact("noisy_totals", 0), "its noisy_totals as a whole number from 1 on, got 0"),
        "endless promise": (
            fact("promised_together", "x" * 5000),
            "its promised_together as a line of at most 2000 characters",
        ),
        "endless totals": (fact("totals_used", "x" * 5000), "its totals_used as a line of at most 2000 characters"),
        "other observations": (fact("observations", "magic"), "got 'magic'"),
        "an endless name": (fact("library", "x" * 5000), "its library in at most 200 characters"),
        "an endless seed": (fact("seed", "1" * 5000), "at most 40 digits, got 5000"),
        "another kind of fact": (fact("model", 3), "its model as <class 'str'>, got int"),
        "broken JSON": (fact("parameters", "{"), "must be readable, got Expecting"),
        "nested JSON": (fact("model", "[" * 50_000), "must be readable, got"),
        "another size": (stated("model", lambda m: m["sizes"].update(k=10**12)), "over axes of sizes"),
    }  # fmt: skip
