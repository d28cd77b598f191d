<?php

declare(strict_types=1);

use Nuthatch\Client;
use Nuthatch\SimpleCache;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Cache\Adapter\Psr16Adapter;

/** Symfony's cache over PSR-16, as README.md has it. */
final class SymfonyTest extends TestCase
{
    public function testSymfonyKeepsValuesHere(): void
    {
        if (!class_exists(Psr16Adapter::class)) {
            self::markTestSkipped('php-symfony-cache is not installed');
        }
        $server = new Server('unix');
        $cache = new Psr16Adapter(new SimpleCache(new Client($server->address('shm'))), 'app', 60);
        $computed = 0;
        for ($round = 0; $round < 3; $round++) {
            $value = $cache->get('key', function () use (&$computed): array {
                $computed++;
                return ['a' => 1.5];
            });
            self::assertSame(['a' => 1.5], $value);
        }
        self::assertSame(1, $computed);
        self::assertTrue($cache->hasItem('key'));
        self::assertTrue($cache->deleteItem('key'));
        self::assertFalse($cache->getItem('key')->isHit());
    }
}
