// A real server for the tests: the program that NUTHATCH names. And others that do not do as they should.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

/** A running server, at a port and two sockets of its own. */
export class Server {
    constructor(...flags) {
        this.folder = mkdtempSync(path.join(tmpdir(), "nuthatch-node-"));
        this.shared = path.join(this.folder, "shared");
        this.flags = flags;
        // However this process ends.
        process.on("exit", () => this.process?.kill());
    }

    static async start(...flags) {
        const server = new Server(...flags);
        await server.begin();
        after(() => server.remove());
        return server;
    }

    /** At this port, any free one, or at a unix socket ("unix"). */
    async begin(port = -1) {
        const ports = path.join(this.folder, "ports");
        rmSync(ports, { force: true });
        const socket = path.join(this.folder, "socket");
        const place = port === "unix" ? ["-s", socket] : ["-l", "127.0.0.1", "-p", port];
        const flags = [...place, "-m", "64", "-t", "1", "--shared", this.shared, ...this.flags];
        const env = { ...process.env, MEMCACHED_PORT_FILENAME: ports };
        this.process = spawn(process.env.NUTHATCH, flags.map(String), { env, stdio: ["ignore", "ignore", "pipe"] });
        let said = "";
        this.process.stderr.on("data", (data) => (said += data));
        this.process.stderr.unref();
        this.process.unref();
        this.ended = once(this.process, "exit");
        // Ready when it has written where it listens, or does: bounded by the process's life, not by a clock.
        const told = () => (existsSync(ports) ? readFileSync(ports, "utf8") : "");
        while (port === "unix" ? !existsSync(socket) : !told().endsWith("\n")) {
            if (this.process.exitCode !== null) {
                throw new Error(`the server ended at once: ${said}`);
            }
            await sleep(10);
        }
        this.unix = `unix://${socket}`;
        this.port = Number(/TCP INET: (\d+)/.exec(told())?.[1]);
        this.redis = Number(/REDIS INET: (\d+)/.exec(told())?.[1]);
        this.tcp = `tcp://127.0.0.1:${this.port}`;
        this.shm = `shm://${this.shared}?or=${this.tcp}`;
    }

    async end(signal = "SIGTERM") {
        this.process.ref();
        this.process.kill(signal);
        await this.ended;
    }

    async remove() {
        if (this.process.exitCode === null && this.process.signalCode === null) {
            await this.end();
        }
        rmSync(this.folder, { recursive: true });
    }
}

/** A server that answers by `answer(what it was sent, its socket)`; its address. */
export async function strange(answer) {
    const sockets = new Set();
    const server = net.createServer((socket) => {
        sockets.add(socket);
        socket.on("error", () => {});
        socket.on("data", (data) => answer(data.toString("latin1"), socket));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    after(() => {
        sockets.forEach((socket) => socket.destroy());
        server.close();
    });
    return `tcp://127.0.0.1:${server.address().port}`;
}

/** A port at which nobody listens. */
export async function nobody() {
    const server = net.createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address();
    server.close();
    await once(server, "close");
    return `tcp://127.0.0.1:${port}`;
}

/** Runs a program of Node.js to its end: what it said, how it ended. */
export async function run(program, ...words) {
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program, ...words], {
        stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (data) => (said += data));
    const [code, signal] = await once(child, "close");
    return { said, code, signal };
}
