"""
The plan that ``kafka-reassign-partitions`` carries out: each partition on several nodes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.server.tools.graduate.nodes import Node, replicas_for


def reassignment(image: MetadataImage, nodes: Sequence[Node]) -> str:
    """
    The plan in JSON, for all topics of the cluster, internal ones too. The first replicas, which
    lead when there is nothing else to decide, are spread over the nodes.
    """
    ids = [node.id for node in nodes]
    replicas = replicas_for(len(ids))
    partitions = [
        (topic.name, number)
        for _, topic in sorted(image.topics_by_name.items())
        for number in sorted(topic.partitions)
    ]
    plan = [
        {
            "topic": name,
            "partition": number,
            "replicas": [ids[(at + step) % len(ids)] for step in range(replicas)],
        }
        for at, (name, number) in enumerate(partitions)
    ]
    return json.dumps({"version": 1, "partitions": plan}, indent=1) + "\n"
