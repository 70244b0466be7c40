"""Makes jobs.csv: a synthetic day of three teams on six nodes with eight GPUs each.

The format is that of Alibaba's GPU trace of 2023, with two more columns: `job` and `queue`. The
public trace has neither jobs nor teams. The arrivals follow from the seed.
"""

import csv
import sys
from random import Random

HOURS = 6
COLUMNS = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
    "job",
    "queue",
]
# Team: jobs per hour, pods per job, GPUs per pod, minutes.
TEAMS = {
    "notebooks": (14, (1,), (1,), (20, 90)),
    "vision": (2.5, (2, 3, 4), (4,), (30, 90)),
    "language": (1.2, (3, 4), (8,), (60, 120)),
}


def rows(seed=7):
    draw = Random(seed)
    for team, (per_hour, sizes, gpus, minutes) in TEAMS.items():
        at, number = 0.0, 0
        while (at := at + draw.expovariate(per_hour / 3600)) < HOURS * 3600:
            size, gpu, number = draw.choice(sizes), draw.choice(gpus), number + 1
            seconds = 60 * draw.randint(*minutes)
            job = f"{team}-{number}" if size > 1 else ""
            for i in range(size):
                name = f"{team}-{number}-{i}"
                times = (round(at), round(at) + seconds, round(at))
                yield name, 4000 * gpu, 16384 * gpu, gpu, 1000, "", "", "", *times, job, team


writer = csv.writer(sys.stdout, lineterminator="\n")
writer.writerow(COLUMNS)
writer.writerows(sorted(rows(), key=lambda row: row[8]))
