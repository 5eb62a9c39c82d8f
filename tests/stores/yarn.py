"""YARN: a ResourceManager and a NodeManager of Hadoop, one process each."""

import os
import shutil
from pathlib import Path

import pyspark
from ports import HOST, free_port
from stores.hdfs import Hdfs, write_settings
from stores.processes import Daemon, Servers, json_at

# Hadoop's dependency injection looks into classes of Java.
JVM = ("-Xmx300m", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true", "--add-opens=java.base/java.lang=ALL-UNNAMED")
MAIN = {"rm": "resourcemanager.ResourceManager", "nm": "nodemanager.NodeManager"}


class Yarn(Servers):
    """The daemons are called rm and nm. `conf` is the folder of a client's configuration, which has that of HDFS too."""

    def __init__(self, folder: Path, jars: Path, hdfs: Hdfs) -> None:
        self.folder, self.conf, self._hdfs = folder, folder / "conf", hdfs
        self._web = f"{HOST}:{free_port()}"
        java = Path(shutil.which("java") or "java").resolve().parents[1]
        self.settings = {
            # For a session. Spark is installed on the machines, so it does not travel.
            "spark.yarn.jars": f"local:{Path(os.environ.get('SPARK_HOME') or Path(pyspark.__file__).parent) / 'jars'}/*",
            "spark.executor.instances": "2",
            "spark.executor.memory": "512m",
            "spark.yarn.am.memory": "512m",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
        }
        class_path = os.pathsep.join((str(self.conf), str(jars / "*")))
        env = {"JAVA_HOME": str(java), "HADOOP_CONF_DIR": str(self.conf)}
        own = (f"-Dhadoop.log.dir={folder}", f"-Dyarn.log.dir={folder}")
        command = ["java", *JVM, *own, "-cp", class_path]
        self.daemons = {name: Daemon(name, [*command, f"org.apache.hadoop.yarn.server.{main}"], folder, env) for name, main in MAIN.items()}

    def start_all(self) -> None:
        """Starts the daemons, and waits until the ResourceManager knows of the NodeManager."""
        shutil.copytree(self._hdfs.conf, self.conf)
        write_settings(self.conf / "yarn-site.xml", self._site())
        queue = "yarn.scheduler.capacity"
        queues = {
            f"{queue}.root.queues": "default",
            f"{queue}.root.default.capacity": "100",
            f"{queue}.maximum-am-resource-percent": "1.0",
            f"{queue}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
        }
        write_settings(self.conf / "capacity-scheduler.xml", queues)
        for daemon in self.daemons.values():
            daemon.start()
        self.daemons["rm"].wait_until(lambda: json_at(f"http://{self._web}/ws/v1/cluster/metrics")["clusterMetrics"]["activeNodes"] == 1)

    def executors(self) -> set[Path]:
        """The folders of the logs of containers in which an executor ran. The log of the one that starts them has their class, too."""
        logs = (self.folder / "logs").rglob("stderr")
        return {log.parent for log in logs if "Successfully registered with driver" in log.read_text(errors="replace")}

    def _site(self) -> dict[str, str]:
        manager, node = "yarn.resourcemanager", "yarn.nodemanager"
        return {
            f"{manager}.hostname": HOST,
            f"{manager}.webapp.address": self._web,
            **{f"{manager}.{each}address": f"{HOST}:{free_port()}" for each in ("", "scheduler.", "resource-tracker.", "admin.")},
            **{f"{node}.{each}address": f"{HOST}:{free_port()}" for each in ("", "localizer.", "webapp.")},
            f"{node}.hostname": HOST,
            f"{node}.local-dirs": str(self.folder / "containers"),
            f"{node}.log-dirs": str(self.folder / "logs"),
            f"{node}.resource.memory-mb": "4096",
            f"{node}.resource.cpu-vcores": "4",
            f"{node}.vmem-check-enabled": "false",
            f"{node}.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            f"{node}.delete.debug-delay-sec": "600",
            "yarn.scheduler.minimum-allocation-mb": "256",
        }
