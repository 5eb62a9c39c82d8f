"""HDFS: NameNodes and DataNodes of Hadoop, one process each."""

import getpass
import json
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

from ports import HOST, free_port
from stores.processes import Daemon, Servers, is_listening, json_at

NAMESERVICE = "ns"
JVM = ("-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
MAIN = {"nn": "org.apache.hadoop.hdfs.server.namenode.NameNode", "dn": "org.apache.hadoop.hdfs.server.datanode.DataNode"}


class Hdfs(Servers):
    """One NameNode and one DataNode; with `ha`, two of each, as hdfs://ns.

    The daemons are called nn1, nn2, dn1 and dn2. `uri` has no slash at its end. `settings` are a client's; the folder `conf` has them as
    core-site.xml and hdfs-site.xml, for HADOOP_CONF_DIR or a class path.
    """

    def __init__(self, folder: Path, jars: Path, *, ha: bool = False) -> None:
        self.ha = ha
        self._folder = folder
        self._names, self._data = (["nn1", "nn2"], ["dn1", "dn2"]) if ha else (["nn1"], ["dn1"])
        self._rpc = {name: f"{HOST}:{free_port()}" for name in self._names}
        self._http = {name: f"{HOST}:{free_port()}" for name in (*self._names, *self._data)}
        self.active = "nn1"
        self.uri = f"hdfs://{NAMESERVICE}" if ha else f"hdfs://{self._rpc['nn1']}"
        self.settings = self._client_settings()
        self.conf = folder / "conf"
        self._class_path = os.pathsep.join((str(self.conf), str(jars / "*")))
        self.daemons = {name: Daemon(name, self._command(name), folder) for name in (*self._names, *self._data)}

    @property
    def webhdfs(self) -> list[str]:
        """The WebHDFS addresses of the NameNodes, "127.0.0.1:port" each; a NameNode in standby answers 403."""
        return [self._http[name] for name in self._names]

    def http_of(self, name: str) -> str:
        """The address of a daemon's HTTP interface, "127.0.0.1:port"."""
        return self._http[name]

    def blocks(self, bytes_min: int) -> set[Path]:
        """The files of those blocks that DataNodes have which are at least so large."""
        found = (path for name in self._data for path in (self._folder / name).rglob("blk_*[0-9]"))
        return {path for path in found if path.stat().st_size >= bytes_min}

    def start_all(self) -> None:
        """Makes an empty file system, starts the daemons, and waits until files can be written."""
        self.conf.mkdir(parents=True)
        for name, settings in {"core": self.settings, "hdfs": self.server_settings()}.items():
            write_settings(self.conf / f"{name}-site.xml", settings)
        self._run([*self._command("nn1"), "-format", "-nonInteractive"])
        if self.ha:
            shutil.copytree(self._folder / "nn1", self._folder / "nn2")  # what -bootstrapStandby does while nothing is written
        for daemon in self.daemons.values():
            daemon.start()
        if self.ha:
            for name in self._names:
                self._wait_for_name_node(name)
            self._admin("-transitionToActive", self.active)
        self.wait_for_data_nodes()

    def start(self, name: str) -> None:
        """Starts a daemon again that was killed, with the data that it left, and waits until a failover may meet it.

        A NameNode of two begins in standby.
        """
        self.daemons[name].start()
        if name in self._names:
            self._wait_for_name_node(name)
        else:  # a NameNode may not have noticed that it was gone
            host, _, port = self._http[name].partition(":")
            self.daemons[name].wait_until(lambda: is_listening(host, int(port)))
        self.wait_for_data_nodes()

    def failover(self) -> str:
        """SIGKILLs the active NameNode, makes the other one active, and returns the name of the one that was killed."""
        killed = self.active
        other = next(name for name in self._names if name != killed)
        self.kill(killed)
        self._admin("-transitionToActive", "--forceactive", other)  # nothing answers for the one that was killed
        self.active = other
        return killed

    def _wait_for_name_node(self, name: str) -> None:
        state = "standby" if self.ha else "active"
        self.daemons[name].wait_until(lambda: self._bean(name, "NameNodeStatus")["State"] == state)

    def wait_for_data_nodes(self) -> None:
        """Until each NameNode is out of safe mode, and knows which DataNodes run: of one that was killed after about 12 seconds.

        One in standby, too: if it became the active one before, it would refuse writes.
        """
        count = sum(self.daemons[name].runs for name in self._data)

        def knows(name: str) -> bool:
            about = self._bean(name, "NameNodeInfo")
            live = json.loads(str(about["LiveNodes"])).values()
            # A DataNode that has just come has no capacity, and gets no blocks, until it tells of its disks.
            return not about["Safemode"] and len(live) == count and all(node["capacity"] for node in live)

        for name in self._names:
            if self.daemons[name].runs:
                self.daemons[name].wait_until(partial(knows, name))

    def open_below(self, uri: str) -> list[str]:
        """The files in a folder that are being written, or were by a client that died: each has a lease, which others must not break."""
        folder = uri.removeprefix(self.uri)
        asked = f"http://{self._http[self.active]}/fsck?ugi={getpass.getuser()}&openforwrite=1&path={quote(folder)}"
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return re.findall(rf"^({re.escape(folder)}/\S+) .*OPENFORWRITE", answer.read().decode(), re.MULTILINE)

    def _bean(self, name: str, bean: str) -> dict[str, object]:
        """A part of what a NameNode tells of itself. ValueError while it does not."""
        beans = json_at(f"http://{self._http[name]}/jmx?qry=Hadoop:service=NameNode,name={bean}")["beans"]
        if not beans:
            raise ValueError(f"{name} does not tell {bean} yet")
        return dict(beans[0])

    def _admin(self, *arguments: str) -> None:
        self._run(["java", *JVM, "-cp", self._class_path, "org.apache.hadoop.hdfs.tools.DFSHAAdmin", *arguments])

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{command[-2:]} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"

    def _command(self, name: str) -> list[str]:
        own = {f"hadoop.log.dir={self._folder}"}
        if name in self._names:
            own |= {f"dfs.namenode.name.dir={self._folder / name}"}
            own |= {f"dfs.ha.namenode.id={name}"} if self.ha else set()
        else:
            own |= {f"dfs.datanode.data.dir={self._folder / name}", f"dfs.datanode.http.address={self._http[name]}"}
            own |= {f"dfs.datanode.{each}={HOST}:{free_port()}" for each in ("address", "ipc.address")}
        return ["java", *JVM, "-cp", self._class_path, MAIN[name[:2]], *(f"-D{each}" for each in sorted(own))]

    def _client_settings(self) -> dict[str, str]:
        settings = {
            "fs.defaultFS": self.uri,
            "dfs.replication": str(len(self._data)),
            # There is no third DataNode that could take the place of one that dies in mid-write.
            "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
            # A file is closed once the DataNode has reported its last block. The client asks for that, and again after 400 ms by default.
            "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
            "dfs.client.block.write.locateFollowingBlock.retries": "10",
        }
        if self.ha:
            settings |= {
                "dfs.nameservices": NAMESERVICE,
                f"dfs.ha.namenodes.{NAMESERVICE}": ",".join(self._names),
                f"dfs.client.failover.proxy.provider.{NAMESERVICE}": FAILOVER,
                **{f"dfs.namenode.rpc-address.{NAMESERVICE}.{name}": address for name, address in self._rpc.items()},
                **{f"dfs.namenode.http-address.{NAMESERVICE}.{name}": self._http[name] for name in self._names},
            }
        return settings

    def server_settings(self) -> dict[str, str]:
        settings = {
            "hadoop.tmp.dir": str(self._folder / "tmp"),
            "dfs.datanode.hostname": HOST,  # WebHDFS sends clients there
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            # A dead DataNode is known to be dead after 12 seconds, not after ten minutes.
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.heartbeat.recheck-interval": "1000",
            "dfs.ha.fencing.methods": "shell(/bin/true)",  # the tests have killed it
        }
        if self.ha:
            # One second in place of one or two minutes, after which the standby has read what the active NameNode wrote.
            settings |= {"dfs.namenode.shared.edits.dir": f"file://{self._folder / 'edits'}", "dfs.ha.tail-edits.period": "1"}
        else:
            settings |= {"dfs.namenode.rpc-address": self._rpc["nn1"], "dfs.namenode.http-address": self._http["nn1"]}
        return settings


def write_settings(path: Path, settings: Mapping[str, str]) -> None:
    """Writes a file of settings as Hadoop reads it."""
    properties = (f"<property><name>{name}</name><value>{escape(value)}</value></property>\n" for name, value in settings.items())
    path.write_text(f"<configuration>\n{''.join(properties)}</configuration>\n")
