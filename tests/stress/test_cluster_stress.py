"""A cluster under everything at once: commands of all kinds, reads of replicas, slots that move, replicas that take over, pauses
and nodes that end; no value is lost, none comes back. CKV_SEED=<n> and CKV_SECONDS=<n> repeat one run, as far as threads do."""

import contextlib
import os
import random
import signal
import time

import pytest

from cluster import NODE_TIMEOUT_MS, SLOTS, Cluster, end_move, keys_of, migrate, start_move
from helpers import reply, wait_for, wait_for_replica
from stress import BRIEF, BRIEF_MS, NOTHING, Connections, Reader, World, Writer, states
from test_cluster_life import fail_over

SEED = int(os.environ.get("CKV_SEED", 0)) or random.randrange(1, 1 << 32)
SECONDS = int(os.environ.get("CKV_SECONDS", 15))
# A node that is told to take over again sooner, by Redis' four node timeouts, counts the votes that it got before: what it wins is of
# an old epoch, and the others take it back.
VOTES_LAST = 4 * NODE_TIMEOUT_MS / 1000
CONFIG = {"ckv.prefixes": '"*"', "ckv.train-after": "64kb", "appendonly": "yes", "appendfsync": "always"}


class Run:
    def __init__(self, world, seed):
        self.world, self.cluster, self.random = world, world.cluster, random.Random(seed)
        self.slots = sorted(world.where)
        names = {slot: keys_of(slot, 10) for slot in self.slots}
        for keys in names.values():
            keys[4], keys[9] = BRIEF + keys[4], BRIEF + keys[9]
        self.keys = names
        writers = [Writer(world, f"writer {i}", seed, {s: k[5 * i : 5 * i + 5] for s, k in names.items()}) for i in range(2)]
        self.clients = writers + [Reader(world, f"reader {i}", seed, names) for i in range(2)]
        self.log = []
        self.elected = {}  # when, by node

    def note(self, *what):
        self.log.append(f"{time.time():.3f} " + " ".join(map(str, what)))

    # ---- what is done to it ----

    def move(self):
        slots = self.random.sample(self.slots, 2)
        for slot in slots:
            source = self.cluster.owner(slot)
            target = self.random.choice([node for node in self.cluster.primaries if node is not source])
            self.note("move", slot, source.port, target.port)
            self.world.moves[slot] += 1
            start_move(source, target, slot)
            time.sleep(self.random.random() * 0.2)
            migrate(source, target, slot)
            time.sleep(self.random.random() * 0.2)
            end_move(self.cluster, target, slot)
            self.world.where[slot] = target
        self.cluster.wait()
        self.in_step()
        for slot in slots:
            self.world.moves[slot] += 1

    def fail_over(self):
        long_ago = time.monotonic() - VOTES_LAST
        electable = [i for i, node in enumerate(self.cluster.replicas) if self.elected.get(node, long_ago) <= long_ago]
        if not electable:
            return
        i = self.random.choice(electable)
        primary, replica = self.cluster.primaries[i], self.cluster.replicas[i]
        self.elected[replica] = time.monotonic()
        self.note("fail over", primary.port, replica.port)
        fail_over(replica)
        wait_for(lambda: primary.ask("ROLE")[0] == b"slave", "an old primary that follows")
        self.cluster.primaries[i], self.cluster.replicas[i] = replica, primary
        for slot in self.slots:
            if self.world.where[slot] is primary:
                self.world.where[slot] = replica
        self.ready()

    def pause(self):
        node = self.random.choice(self.cluster.nodes)
        self.note("pause", node.port)
        node.ask("CLIENT", "PAUSE", self.random.randrange(50, 500), "WRITE")
        if self.random.random() < 0.3:
            time.sleep(self.random.random() * 0.1)
            node.ask("CLIENT", "UNPAUSE")

    def restart(self):
        node = self.random.choice(self.cluster.nodes)
        how = self.random.choice((signal.SIGTERM, signal.SIGKILL))
        self.note("restart", node.port, how)
        node.process.send_signal(how)
        node.process.wait(60)
        node.start()
        self.ready()

    def rewrite(self):
        node = self.random.choice(self.cluster.nodes)
        self.note("rewrite", node.port)
        reply(node.client(), "BGREWRITEAOF")

    def ready(self):
        self.cluster.wait()
        for node in self.cluster.replicas:
            wait_for(lambda: node.ask("INFO", "replication")["master_link_status"] == "up", "a replica that follows")

    def in_step(self):
        for node in self.cluster.primaries:
            with node.client() as r:
                wait_for_replica(r)

    # ---- what it is then ----

    def check(self):
        """While nobody writes."""
        self.note("check")
        self.world.go.clear()
        with contextlib.ExitStack() as stack:
            for client in self.clients:
                stack.enter_context(client.lock)
            time.sleep(BRIEF_MS / 1000 + 0.1)
            self.ready()
            self.in_step()
            for primary, replica in zip(self.cluster.primaries, self.cluster.replicas):
                self.check_pair(primary, replica)
        self.world.go.set()
        assert not self.world.wrong

    def check_pair(self, primary, replica):
        model = self.world.model.server
        ours = [key for slot in self.slots if self.cluster.owner(slot) is primary for key in self.keys[slot]]
        connections = Connections()
        wanted = states(lambda *c: connections.send(model, *c), ours)
        times = connections.send(model, *(("PTTL", key) for key in ours)) if ours else []
        there = {key for key, state in zip(ours, wanted) if state != NOTHING}
        for node in (primary, replica):
            send = lambda *c: connections.send(node, ("READONLY",), *c)[1:]
            for key, state, at, found, its in zip(ours, wanted, times, states(send, ours), send(*(("PTTL", key) for key in ours))):
                about = f"{key} on {node.port}, a {node.ask('ROLE')[0]}; {list(self.world.model.told[key])}"
                assert found == state, f"{found} instead of {state}: {about}"
                assert abs(at - its) <= (at * 0.002 if at > 0 else 0), f"TTL {its} instead of {at}: {about}"
            wait_for(lambda: set(node.ask("KEYS", "*")) == there, f"on {node.port} no key but those of its slots")
            wait_for(lambda: node.ask("DBSIZE") == len(there), "the right DBSIZE")
        for slot in self.slots:
            named = lambda node: sorted(node.ask("CLUSTER", "GETKEYSINSLOT", slot, 100))
            with contextlib.suppress(AssertionError):
                wait_for(lambda: named(primary) == named(replica))
            assert named(primary) == named(replica), f"slot {slot} on {primary.port} and {replica.port}; {dict(self.world.model.told)}"
            if self.cluster.owner(slot) is not primary:
                assert named(primary) == [], f"slot {slot}: left on {primary.port}"

    def act(self, what):
        shaking = what not in (self.move, self.pause, self.rewrite)
        self.world.turns += shaking
        what()
        self.world.turns += shaking

    def run(self):
        for client in self.clients:
            client.start()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for _ in range(8):
                self.act(self.random.choice((self.move, self.move, self.pause, self.pause, self.fail_over, self.restart, self.rewrite)))
                if self.world.wrong:
                    break
            self.check()
        for client in self.clients:
            client.finish()
        for node in self.cluster.nodes:
            node.stop()
        for node in self.cluster.nodes:
            node.start()
        self.check()


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_everything_at_once(preamble):
    with Cluster(primaries=2, replicas=1, config={**CONFIG, "aof-use-rdb-preamble": preamble}) as cluster:
        slots = random.Random(SEED).sample(range(SLOTS), 24)
        world = World(cluster, slots)
        run = Run(world, SEED)
        try:
            run.run()
        except BaseException as error:
            log = "\n".join(run.log[-30:] + world.wrong[:10])
            raise AssertionError(f"{error!r}\nCKV_SEED={SEED}; what was done last, and what was wrong:\n{log}") from error
        finally:
            for client in run.clients:
                client.stopping = True
            world.go.set()
            world.model.close()
        print(f"CKV_SEED={SEED}: {[(c.name, c.done) for c in run.clients]}, {len(run.log)} steps")
