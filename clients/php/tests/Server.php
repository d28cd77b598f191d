<?php

declare(strict_types=1);

/** A server with sockets of its own, which ends with the object. NUTHATCH in the environment is its program. */
final class Server
{
    public readonly string $folder;
    public readonly int $port;
    /** @var resource|null */
    private $process = null;

    /** @param "unix"|"tcp" $kind */
    public function __construct(private readonly string $kind)
    {
        $this->folder = Wait::folder();
        $this->port = $kind === 'tcp' ? Wait::port() : 0;
        $this->start();
    }

    /** A socket of a server of one of these kinds: "unix", "shm", which has its memory read, or "tcp". */
    public function address(string $kind): string
    {
        $unix = "unix://$this->folder/socket";
        return match ($kind) {
            'unix' => $unix,
            'shm' => "shm://$this->folder/shared?or=$unix",
            'tcp' => "tcp://127.0.0.1:$this->port",
        };
    }

    public function start(): void
    {
        $sockets = $this->kind === 'tcp'
            ? ['-l', '127.0.0.1', '-p', (string) $this->port]
            : ['-s', "$this->folder/socket", '--shared', "$this->folder/shared"];
        $log = ['file', "$this->folder/log", 'w'];
        $this->process = proc_open(
            [getenv('NUTHATCH'), ...$sockets, '-t', '1', '-m', '64', ...(posix_getuid() === 0 ? ['-u', 'root'] : [])],
            [1 => $log, 2 => $log],
            $pipes
        );
        Wait::until('a server', fn () => str_contains(file_get_contents("$this->folder/log"), ': engine '));
    }

    /** Sends it a signal. */
    public function signal(int $signal): void
    {
        proc_terminate($this->process, $signal);
    }

    /** Has it answer nothing until it is sent SIGCONT. */
    public function suspend(): void
    {
        $this->signal(SIGSTOP);
        $stat = '/proc/' . proc_get_status($this->process)['pid'] . '/stat';
        Wait::until('the stop of a server', fn () => preg_match('/\) T /', file_get_contents($stat)) === 1);
    }

    /** Ends it, and waits for its end. */
    public function stop(int $signal = SIGTERM): void
    {
        if ($this->process !== null) {
            $this->signal($signal);
            // If a test has stopped it.
            $this->signal(SIGCONT);
            proc_close($this->process);
            $this->process = null;
        }
    }

    /** A number of its statistics. */
    public function statistic(string $name): int
    {
        $address = $this->kind === 'tcp' ? $this->address('tcp') : $this->address('unix');
        $socket = stream_socket_client($address);
        fwrite($socket, "stats\r\nquit\r\n");
        preg_match("/STAT $name (\d+)/", stream_get_contents($socket), $found);
        return (int) $found[1];
    }

    public function __destruct()
    {
        $this->stop();
        Wait::remove($this->folder);
    }
}
