"""Functions are replaced for the thread alone that replaces them."""

from __future__ import annotations

import threading

from jpsi_testing.threads import in_this_thread


def test_other_threads_call_the_original() -> None:
    calls: list[str] = []
    either = in_this_thread(lambda it: calls.append(f"replaced {it}"), calls.append)
    other = threading.Thread(target=either, args=["there"])

    other.start()
    other.join()
    either("here")

    assert calls == ["there", "replaced here"]
