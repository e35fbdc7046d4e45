"""The process that starts programs, killed at a step of its own."""

#: A program that is `job_starter`, but is killed before or after it calls a function of its own.
KILLED = """
import importlib.util, os, signal

spec = importlib.util.spec_from_file_location("job_starter", {path!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
owner, name = {owner}, {name!r}
original, left = getattr(owner, name), [{calls}]

def killed(*args, **kwargs):
    left[0] -= 1
    if left[0]:
        return original(*args, **kwargs)
    if {when!r} == "after":
        original(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, killed)
main = module.main
"""
