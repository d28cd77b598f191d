<?php

declare(strict_types=1);

use PHPUnit\Framework\TestCase;

/** PHP behind a web server: the example, by PHP's own server, with the settings that README.md names. */
final class WebTest extends TestCase
{
    private const PACKAGE = __DIR__ . '/..';
    private const EXAMPLE = __DIR__ . '/../../../examples/php/page_cache.php';

    private Server $cache;
    /** @var resource|null */
    private $web = null;
    private int $port;

    protected function setUp(): void
    {
        if (!extension_loaded('Zend OPcache')) {
            self::markTestSkipped('PHP has no extension opcache');
        }
        $this->cache = new Server('unix');
    }

    protected function tearDown(): void
    {
        if ($this->web !== null) {
            // Its workers are of its group, and do not end with it.
            @posix_kill(-proc_get_status($this->web)['pid'], SIGTERM);
            proc_close($this->web);
            $this->web = null;
        }
        unset($this->cache);
    }

    /**
     * Starts it with so many processes.
     *
     * @param list<string> $settings
     */
    private function serve(int $processes, array $settings): void
    {
        $this->port = Wait::port();
        // Who is root says so.
        $settings = [...$settings, ...(posix_getuid() === 0 ? ['opcache.preload_user=root'] : [])];
        $words = array_merge(...array_map(fn (string $setting) => ['-d', $setting], $settings));
        $log = ['file', "{$this->cache->folder}/web.log", 'w'];
        $environment = ['CACHE' => $this->cache->address('shm')] + getenv();
        if ($processes > 1) {
            $environment['PHP_CLI_SERVER_WORKERS'] = (string) $processes;
        }
        $this->web = proc_open(
            ['setsid', PHP_BINARY, ...$words, '-S', "127.0.0.1:$this->port", self::EXAMPLE],
            [1 => $log, 2 => $log],
            $pipes,
            null,
            $environment
        );
        Wait::until('the web server', function (): bool {
            $log = file_get_contents("{$this->cache->folder}/web.log");
            self::assertTrue(proc_get_status($this->web)['running'], "the web server has ended: $log");
            return @fsockopen('127.0.0.1', $this->port) !== false;
        });
    }

    /** @return resource a request whose reply has not been read */
    private function ask(string $path)
    {
        $socket = fsockopen('127.0.0.1', $this->port);
        fwrite($socket, "GET $path HTTP/1.0\r\n\r\n");
        return $socket;
    }

    private function page(string $path): string
    {
        return stream_get_contents($this->ask($path));
    }

    public function ways(): array
    {
        $preload = 'opcache.preload=' . self::PACKAGE . '/preload.php';
        return [
            'any code may call libraries' => [['ffi.enable=true']],
            'preloaded code may' => [[$preload]],
            'and the library is loaded once' => [[$preload, 'ffi.preload=' . self::PACKAGE . '/src/nuthatch_client.h']],
        ];
    }

    /** @dataProvider ways */
    public function testRequestsShareTheClientOfTheirProcess(array $settings): void
    {
        $this->serve(1, $settings);
        self::assertStringContainsString('X-Cache: made', $this->page('/a?b'), file_get_contents("{$this->cache->folder}/web.log"));
        $before = $this->cache->statistic('total_connections');
        for ($round = 0; $round < 20; $round++) {
            self::assertStringContainsString('X-Cache: found', $this->page('/a'));
        }
        // Who asked for the statistics.
        self::assertSame($before + 1, $this->cache->statistic('total_connections'));
    }

    /** @dataProvider ways */
    public function testOnePageIsMadeForAllProcesses(array $settings): void
    {
        $this->serve(4, $settings);
        $asked = array_map(fn () => $this->ask('/page'), range(1, 8));
        $pages = array_map(stream_get_contents(...), $asked);
        $made = array_filter($pages, fn (string $page) => str_contains($page, 'X-Cache: made'));
        self::assertCount(1, $made, implode("\n", $pages));
        $bodies = array_map(fn (string $page) => explode("\r\n\r\n", $page, 2)[1], $pages);
        self::assertCount(1, array_unique($bodies));
        self::assertStringContainsString('<h1>/page</h1>', $bodies[0]);
    }

    public function testWithoutTheSettingsTheReasonIsTold(): void
    {
        $this->serve(1, ['ffi.enable=preload', 'display_errors=1']);
        $page = $this->page('/');
        self::assertStringContainsString('ffi.enable', $page);
        self::assertStringContainsString('README.md', $page);
    }
}
