# What the scripts of this folder share: starting ranks, as root too, on fewer cores than ranks, within a time limit.
import os
import signal
import subprocess
import sys
import tempfile
import unittest

LIMIT = 60  # seconds for one program; a run that is not stuck takes one or two
MPIEXEC = sys.argv.pop(1)


def skip(reason):
    print("SKIP: " + reason)
    sys.exit(77)


def environment(io="ompio", **more):
    """OpenMPI's settings by environment, so that other MPIs ignore them."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl": "self,vader",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_io": io, "OMP_NUM_THREADS": "1", **more}


def mpirun(ranks, program, *args, env):
    return start([MPIEXEC, "-n", str(ranks), program, *map(str, args)], env)


def start(argv, env):
    """Runs a job in a process group of its own; past the limit the whole group ends, and the test fails."""
    job = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, start_new_session=True)
    try:
        out, err = job.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
        raise AssertionError("still running after %d s: %s" % (LIMIT, " ".join(argv)))
    return subprocess.CompletedProcess(argv, job.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def need_mpi():
    try:
        done = start([MPIEXEC, "-n", "2", "true"], environment())
    except (OSError, AssertionError) as error:
        skip("mpirun does not start: %s" % error)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        skip("mpirun does not start two processes here: " + reason)


class MpiTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="quern-mpi-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def assert_ran(self, done):
        self.assertEqual(done.returncode, 0, (done.args, done.stdout, done.stderr))


def stored_chunks(h5py, path):
    """Every chunk's place and bytes of every dataset that quern compressed."""
    chunks = {}
    with h5py.File(path, "r") as file:
        for name, dataset in file.items():
            if not isinstance(dataset, h5py.Dataset) or dataset.id.get_create_plist().get_nfilters() == 0:
                continue
            infos = [dataset.id.get_chunk_info(i) for i in range(dataset.id.get_num_chunks())]
            chunks[name] = {i.chunk_offset: dataset.id.read_direct_chunk(i.chunk_offset) for i in infos}
    return chunks
