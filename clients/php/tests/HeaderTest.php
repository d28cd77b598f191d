<?php

declare(strict_types=1);

use Nuthatch\Native;
use PHPUnit\Framework\TestCase;

/**
 * src/nuthatch_client.h is the C library's header, as far as PHP can read it.
 *
 * After a change: NUTHATCH_WRITE_HEADER=1 scripts/test-php.sh --filter HeaderTest
 */
final class HeaderTest extends TestCase
{
    private const PHPS = __DIR__ . '/../src/nuthatch_client.h';
    private const CS = __DIR__ . '/../../../crates/client/client-c/include/nuthatch_client.h';

    public function testIsCurrent(): void
    {
        $major = explode('.', getenv('NUTHATCH_VERSION'))[0];
        $header = file_get_contents(self::CS);
        // FFI knows neither comments nor conditions; and it takes strings for `char`, and for nothing else.
        $header = preg_replace(['~/\*.*?\*/~s', '/^#ifdef __cplusplus.*?^#endif.*?$/ms', '~//.*~', '/^#.*$/m'], '', $header);
        $header = str_replace('const uint8_t *', 'const char *', $header);
        $header = trim(preg_replace(['/^ +$/m', '/\n{2,}/'], ['', "\n"], $header));
        // PHP looks for these at the beginning only.
        $made = "#define FFI_LIB \"libnuthatch_client.so.$major\"\n#define FFI_SCOPE \"NUTHATCH_CLIENT\"\n"
            . "/* Made of crates/client/client-c/include/nuthatch_client.h: see tests/HeaderTest.php. */\n$header\n";
        if (getenv('NUTHATCH_WRITE_HEADER') !== false) {
            file_put_contents(self::PHPS, $made);
        }
        self::assertSame($made, file_get_contents(self::PHPS));
    }

    public function testStatusesAreThoseOfTheHeader(): void
    {
        preg_match_all('/NUTHATCH_CLIENT_STATUS_(\w+) = (-?\d+)/', file_get_contents(self::CS), $found);
        $statuses = array_map(intval(...), array_combine($found[1], $found[2]));
        self::assertSame(Native::DONE, $statuses['DONE']);
        self::assertSame(Native::COMPUTE, $statuses['COMPUTE']);
        self::assertSame(
            [-2, -3, -4, -5, -6],
            array_map(fn ($name) => $statuses[$name], ['INVALID', 'NOT_SENT', 'NO_REPLY', 'REFUSED', 'NOT_A_NUMBER'])
        );
    }
}
