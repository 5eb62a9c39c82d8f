"""Programs that share servers of one root, in a simulation: `sparklog.serve.use` is the code that runs, and all around it is a model.

Each program has the threads of a producer: a thread that sends, a thread that watches the connection, and kafka-python's thread. Servers
and programs are killed between any two acts, servers end when they are unused, and other programs take the addresses of dead servers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from model.scheduler import Process, Scheduler, Violation

from sparklog.errors import SparklogError
from sparklog.serve import use

UNUSED_STEPS = 15
CHAOS_STEPS, QUIET_STEPS = 6_000, 40_000
PROGRAMS = 3
PORTS = 4
"""So few that an address is soon used again."""


@dataclass(eq=False)
class Server:
    pid: int
    address: str
    users: list[Connection] = field(default_factory=list)
    alive: bool = True
    listens: bool = True


@dataclass(eq=False)
class Connection:
    server: Server
    program: Program
    closed: bool = False

    @property
    def open(self) -> bool:
        return self.server.alive and not self.closed and not self.program.dead


@dataclass(eq=False)
class Client:
    """A producer of kafka-python. Its records have numbers, and are sent again until they are acknowledged. `producer` is its id."""

    producer: str
    address: str
    waiting: list[int] = field(default_factory=list)
    next: int = 0
    aborted: bool = False


@dataclass(eq=False)
class Program:
    name: str
    use: use.Use
    client: Client | None = None
    turn: bool = False
    dead: bool = False
    over: bool = False


class World:
    """One run. `mutant` names a rule that is left out."""

    def __init__(self, seed: int, mutant: str = "") -> None:
        self.scheduler = Scheduler(seed, deaths=0)
        self.chance, self.mutant = self.scheduler.random, mutant
        self.note: use.Note | None = None
        self.lock: Program | None = None
        self.servers: list[Server] = []
        self.strangers: set[str] = set()
        self.programs: list[Program] = []
        self.log: list[tuple[str, int]] = []
        self.acknowledged: dict[str, list[int]] = {}
        self.chaos = True
        self.counts: Counter[str] = Counter()

    # ---- the requests of the code

    def answered(self, program: Program, steps: use.Steps[None]) -> Process:
        """Runs steps of the code, with others between any two requests. The lock is given back at the end, whatever it is."""
        try:
            request = next(steps)
            while True:
                yield self.scheduler.nap() // 20
                if isinstance(request, use.Lock) and self.mutant != "no lock":
                    while self.lock is not None:
                        yield None
                    self.lock = program
                try:
                    reply = self._reply(program, request)
                except SparklogError as error:
                    request = steps.throw(error)
                    continue
                while isinstance(request, use.Start) and self._awaits(reply):
                    yield None
                request = steps.send(reply)
        except StopIteration:
            pass
        finally:
            if self.lock is program:
                self.lock = None

    def _reply(self, program: Program, request: use.Request) -> object:
        match request:
            case use.ReadNote():
                return self.note
            case use.Connect(note):
                if note == program.use.gone:
                    raise Violation(f"{program.name} asks a server that it knows to be gone, so perhaps another program at its address")
                return self._connection(program, lambda server: server.pid == note.pid)
            case use.IsFree(address):
                return self._free(address)
            case use.Start(address):
                return self._start(program, address)
            case use.WriteNote(note):
                self.note = note
            case use.Disconnect(connection):
                connection.closed = self.mutant != "keeps its connection"
        return None

    def _connection(self, program: Program, found: Callable[[Server], bool]) -> Connection | None:
        server = next((each for each in self.servers if each.alive and each.listens and found(each)), None)
        if server is None:
            return None
        connection = Connection(server, program)
        server.users.append(connection)
        return connection

    def _awaits(self, started: object) -> bool:
        """A server listens some steps after its start."""
        return self.scheduler.chance(2) and isinstance(started, use.Note)

    def _free(self, address: str) -> bool:
        return address not in self.strangers and not any(each.address == address and each.alive and each.listens for each in self.servers)

    def _start(self, program: Program, address: str | None) -> use.Note:
        noted = next((each for each in self.servers if self.note and each.pid == self.note.pid), None)
        if noted and noted.alive and noted.listens:
            raise Violation(f"{program.name} starts a server beside one that others find")
        free = [each for each in map(str, range(PORTS)) if self._free(each)]
        if not free or (address is not None and address not in free):
            self.counts["refused starts"] += 1
            raise SparklogError("SERVE_START", root="log", output="the address is taken")
        self.counts["starts at the same address" if address else "starts"] += 1
        server = Server(len(self.servers) + 1, address or self.chance.choice(free))
        self.servers.append(server)
        self.scheduler.start(f"server {server.pid}", self._serve(server))
        return use.Note(server.address, server.pid)

    def _serve(self, server: Server) -> Process:
        """Ends when it had no user for some time: first it accepts no connection any longer, and later it is gone."""
        unused = 0
        while server.alive and unused < UNUSED_STEPS:
            yield 1 + self.scheduler.nap() // 50
            server.users = [each for each in server.users if each.open]
            unused = 0 if server.users else unused + 1
        yield self.chance.randrange(60)
        server.listens = False
        yield self.chance.randrange(20)
        if server.alive:
            self.counts["servers that ended"] += 1
            if server.users:
                self.counts["servers that ended with a new client"] += 1
        server.alive = False

    # ---- the threads of a program

    def living(self, program: Program, thread: Process) -> Process:
        for step in thread:
            yield step
            if program.dead:
                return

    def _take_turn(self, program: Program) -> Process:
        while program.turn:
            yield None
        program.turn = True

    def serving(self, program: Program) -> Process:
        """As `SharedServer.serving`: True if there is a server."""
        yield from self._take_turn(program)
        try:
            if program.use.connection is None and not program.use.closed:
                yield from self.answered(program, program.use.serving())
                self.scheduler.start(
                    f"{program.name} watches {len(self.servers)}.{self.scheduler.step}",
                    self.living(program, self._watch(program, program.use.connection)),
                )
        finally:
            program.turn = False

    def _watch(self, program: Program, connection: Connection) -> Process:
        while connection.open:
            yield None
        yield from self._take_turn(program)
        lost = program.use.lost(connection) if self.mutant != "does not see the end" else False
        program.turn = False
        if lost:
            try:
                yield from self.serving(program)
            except SparklogError:
                self.counts["starts that failed while nobody asked"] += 1

    def _main(self, program: Program) -> Process:
        """Sends records, each of them to the server that runs then, as `Producer.send` does; and closes."""
        while self.chaos or program.client is None:
            yield self.scheduler.nap() // 10
            try:
                yield from self.serving(program)
            except SparklogError:
                continue
            self._follow(program)
            assert program.client is not None
            program.client.waiting.append(program.client.next)
            program.client.next += 1
            if self.chaos and self.scheduler.chance(60):
                break
        while program.client and program.client.waiting:
            yield 5
            try:
                yield from self.serving(program)
            except SparklogError:
                continue
            self._follow(program)
        yield from self.answered(program, program.use.close())
        program.over = True

    def _follow(self, program: Program) -> None:
        address, before = program.use.address, program.client
        assert address is not None
        if before is None or before.address != address:
            if before is not None:
                before.aborted = True
                self.counts["clients that were replaced"] += 1
                self.counts["records that failed"] += len(before.waiting)
            program.client = Client(f"{program.name}.{self.scheduler.step}", address)
            self.scheduler.start(f"{program.client.producer} sends", self.living(program, self._deliver(program, program.client)))

    def _deliver(self, program: Program, client: Client) -> Process:
        """Is connected to its server while there is one, and sends what waits. An answer may be lost, and the records are sent again."""
        connection: Connection | None = None
        while not client.aborted:
            yield 1 + self.scheduler.nap() // 50
            if connection is None or not connection.open:
                connection = self._connection(program, lambda server: server.address == client.address)
                if connection is None:
                    continue
            sent = list(client.waiting)
            yield None
            if not connection.open or client.aborted:
                continue
            for number in sent:
                if (client.producer, number) not in self.log:
                    self.log.append((client.producer, number))
            yield None
            if connection.open:
                self.acknowledged.setdefault(client.producer, []).extend(sent)
                del client.waiting[: len(sent)]
            else:
                self.counts["answers that were lost"] += 1
        if connection:
            connection.closed = True

    # ---- the run

    def _accidents(self) -> Process:
        acts: list[Callable[[], None]] = [self._kill_a_server, self._kill_a_program, self._take_an_address, self._leave_an_address]
        while self.chaos:
            yield 20 + self.scheduler.nap() // 4
            self.chance.choice(acts)()

    def _kill_a_server(self) -> None:
        if running := [each for each in self.servers if each.alive]:
            killed = self.chance.choice(running)
            killed.alive = killed.listens = False
            self.counts["kills of servers"] += 1

    def _kill_a_program(self) -> None:
        if self.scheduler.chance(3) and (running := [each for each in self.programs if not each.over and not each.dead]):
            killed = self.chance.choice(running)
            killed.dead = True
            if self.lock is killed:
                self.lock = None
                self.counts["programs that were killed with the lock"] += 1

    def _take_an_address(self) -> None:
        if self.note and self._free(self.note.address) and len(self.strangers) < PORTS - 2:
            self.strangers.add(self.note.address)

    def _leave_an_address(self) -> None:
        self.strangers = set(list(self.strangers)[1:])

    def _programs(self) -> None:
        running = sum(not each.over and not each.dead for each in self.programs)
        if self.chaos and running < PROGRAMS and self.scheduler.chance(150):
            program = Program(f"program {len(self.programs)}", use.Use("log"))
            self.programs.append(program)
            self.scheduler.start(program.name, self.living(program, self._main(program)))

    def run(self) -> None:
        self.scheduler.start("accidents", self._accidents())
        self.scheduler.run(CHAOS_STEPS, self._programs)
        self.chaos = False
        self.scheduler.run(QUIET_STEPS, self._end_clients)
        self._check()

    def _end_clients(self) -> None:
        for program in self.programs:
            if program.client and (program.over or program.dead):
                program.client.aborted = True

    def _check(self) -> None:
        for program in self.programs:
            if not program.over and not program.dead:
                raise Violation(f"{program.name} waits for ever: {program}")
        if running := [each for each in self.servers if each.alive]:
            raise Violation(f"servers that nobody uses do not end: {running}")
        for producer, numbers in self.acknowledged.items():
            there = [number for name, number in self.log if name == producer]
            if numbers != sorted(set(numbers)) or there != sorted(set(there)) or not set(numbers) <= set(there):
                raise Violation(f"records of {producer} are lost, doubled or out of order: {numbers}, {there}")
