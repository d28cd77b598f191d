<?php

declare(strict_types=1);

use PHPUnit\Framework\TestCase;

/** How the library is found. NUTHATCH_TEST_LIBRARY is its file. */
final class LibraryTest extends TestCase
{
    /**
     * What a program prints that makes a client.
     *
     * @param array<string, string> $environment
     */
    private function printed(array $environment, string $arguments = ''): string
    {
        $program = 'require $argv[1]; try { echo (new Nuthatch\Client("tcp://127.0.0.1:9"' . $arguments . '))->version(); }'
            . ' catch (Nuthatch\Exception\LibraryException $failure) { echo $failure->getMessage(); }';
        $process = proc_open(
            [PHP_BINARY, '-r', $program, __DIR__ . '/../autoload.php'],
            [1 => ['pipe', 'w']],
            $pipes,
            null,
            $environment
        );
        $printed = stream_get_contents($pipes[1]);
        proc_close($process);
        return $printed;
    }

    public function testByItsNameOrByItsFile(): void
    {
        [$version, $file] = [getenv('NUTHATCH_VERSION'), getenv('NUTHATCH_TEST_LIBRARY')];
        self::assertSame($version, $this->printed(['LD_LIBRARY_PATH' => getenv('LD_LIBRARY_PATH')]));
        self::assertSame($version, $this->printed(['NUTHATCH_CLIENT_LIBRARY' => $file]));
        self::assertSame($version, $this->printed([], ", library: '$file'"));
        self::assertStringContainsString('README.md', $this->printed([], ", library: '/none/libnuthatch_client.so'"));
        self::assertStringContainsString('/none.so', $this->printed(['NUTHATCH_CLIENT_LIBRARY' => '/none.so']));
    }
}
