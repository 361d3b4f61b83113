"""Functions that run in a process of their own, as a fork of the test, which has the slow imports behind it."""
import json
import os
import sys
import traceback


def forked(function, *arguments):
    """What function(*arguments) gives, by way of JSON. Its exception is an AssertionError here."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            text = json.dumps(function(*arguments))
            with os.fdopen(writing, "w") as file:
                file.write(text)
            status = 0
        except BaseException:  # noqa: B902: the process ends here
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise AssertionError(f"{function.__name__}{arguments} failed in its process (status {status}); see above")
    return json.loads(text)
