<?php

declare(strict_types=1);

/** What tests wait for, and what they need of the system. */
final class Wait
{
    private const PATIENCE_S = 120;

    /** Looks until something is so. */
    public static function until(string $what, callable $look): void
    {
        $end = microtime(true) + self::PATIENCE_S;
        while (!$look()) {
            if (microtime(true) > $end) {
                throw new RuntimeException("waited in vain: $what");
            }
            usleep(2000);
        }
    }

    /** An empty folder. */
    public static function folder(): string
    {
        $folder = sys_get_temp_dir() . '/nuthatch-' . bin2hex(random_bytes(6));
        mkdir($folder, 0700);
        return $folder;
    }

    /** Removes a folder and its files. */
    public static function remove(string $folder): void
    {
        array_map(unlink(...), glob("$folder/*"));
        rmdir($folder);
    }

    /** A port of 127.0.0.1 that nobody has, and that the kernel gives to nobody by chance. */
    public static function port(): int
    {
        $given = (int) file_get_contents('/proc/sys/net/ipv4/ip_local_port_range');
        do {
            $port = random_int(intdiv($given, 2), $given - 1);
            $socket = @stream_socket_server("tcp://127.0.0.1:$port");
        } while ($socket === false);
        fclose($socket);
        return $port;
    }
}
