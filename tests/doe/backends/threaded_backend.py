"""A backend whose import begins a thread, after which a fork is not as good as a new process."""

import threading
import time

threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()


def run(request):
    return {"y": 1.0, "threads": threading.active_count()}
