"""
The one Spark session of the tests, and Apache Spark's own connector to Kafka.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from tests.support.maven import PrerequisiteMissing, cache, jars

CONNECTOR_VERSION: Final = "4.2.0"

_ARTIFACTS: Final = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": CONNECTOR_VERSION,
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}
"""
The newest set that Maven Central has whole; what else the connector needs comes with PySpark 4.3.

Of the token provider only what serves delegation tokens changed since, which nobody uses here.
"""


def connector_jars() -> list[Path]:
    """
    The jars of Apache Spark's connector to Kafka.

    Raises:
        PrerequisiteMissing: they are not there yet, and Maven is missing or could not fetch them.
    """
    directory = cache(f"spark-connector-{CONNECTOR_VERSION}")
    return sorted(jars(directory, "libs", _ARTIFACTS, with_dependencies=False).glob("*.jar"))


QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""
Options of a virtual machine that compiles little: a test is over before more pays.
"""


def start_session(
    directory: Path, *, cores: int = 2, memory: str = "1g", java_options: str = QUICK
) -> SparkSession:
    """
    A session in this process, with the connector, that keeps all its files in *directory*.

    A failed task is tried once more, as on a cluster.

    Raises:
        PrerequisiteMissing: there is no Java, or the connector cannot be had.
    """
    if shutil.which("java") is None:
        raise PrerequisiteMissing("no java on the path (Spark needs 17 or newer)")
    # Workers would otherwise run the first python3 on the path, which knows nothing of Barnabas.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings: dict[str, str | int | float | bool | None] = {
        "spark.driver.extraJavaOptions": java_options,
        "spark.driver.memory": memory,
        "spark.jars": ",".join(str(jar) for jar in connector_jars()),
        "spark.local.dir": str(directory / "local"),
        "spark.log.level": "ERROR",
        "spark.python.unix.domain.socket.enabled": True,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": cores,
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    builder = SparkSession.builder.master(f"local[{cores},2]").appName("barnabas")
    return builder.config(map=settings).getOrCreate()
