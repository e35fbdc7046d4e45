"""The beginning of programs that kill themselves at an instant, which their tests choose."""

#: It counts the instants before and after what is `ticking`, and at the end of each transaction. The program
#: sets `instant`, the number of the one at which it is killed; 0 is none.
TICKING = """\
import contextlib, os, signal, sys
import jpsi
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.jobs.materialize import Materializer
from jpsi_records.records.records import Records
from jpsi_records.store.database import Database

count = 0


def tick():
    global count
    count += 1
    if count == instant:
        os.kill(os.getpid(), signal.SIGKILL)


def ticking(function):
    def call(*arguments):
        tick()
        result = function(*arguments)
        tick()
        return result
    return call


writing = Database.writing


@contextlib.contextmanager
def written(self):
    with writing(self) as tx:
        yield tx
        tick()
    tick()


Database.writing = written
"""
