"""A worker in Python, with nothing but its standard library: it takes tasks from a queue, does them, says what came of them.

    python3 worker.py http://127.0.0.1:7420 mail
"""
import json, sys, threading, time, urllib.error, urllib.request, uuid

url, queue = sys.argv[1], sys.argv[2]
worker, lease = f"python-{uuid.uuid4().hex[:8]}", 15


def send_mail(order, task):
    if "@" not in order["to"]:
        raise ValueError(f"{order['to']} is no address")
    return {"message": task["idempotencyKey"], "attempt": task["attempt"]}


activities = {"send-mail": send_mail}


def call(path, body, timeout=15):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.loads(answer.read() or "null")


def keep(task, done):
    """The task stays this worker's as long as it says so within the lease."""
    while not done.wait(lease / 3):
        try:
            call(f"/v1/activity-tasks/{task['token']}/heartbeat", {"lease": f"{lease}s"})
        except OSError:
            pass  # not its any more, or the server is away: what it says next tells which


def do(task):
    done = threading.Event()
    threading.Thread(target=keep, args=(task, done), daemon=True).start()
    try:
        said = "complete", {"output": activities[task["activity"]](task["input"], task)}
    except Exception as error:
        said = "fail", {"failure": {"name": type(error).__name__, "message": str(error)}}
    try:
        call(f"/v1/activity-tasks/{task['token']}/{said[0]}", said[1])
    except OSError as error:
        print(f"the outcome of {task['token']} was not taken: {error}", file=sys.stderr)
    done.set()


while True:
    try:
        body = {"worker": worker, "activities": list(activities), "max": 1, "lease": f"{lease}s"}
        tasks = call(f"/v1/queues/{queue}/poll?wait=30s", body, timeout=45)
        for task in (tasks or {"items": []})["items"]:
            do(task)
    except OSError:
        time.sleep(1)  # the server is away
