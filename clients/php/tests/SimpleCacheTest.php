<?php

declare(strict_types=1);

use Cache\IntegrationTests\SimpleCacheTest as Standard;
use Nuthatch\Client;
use Nuthatch\SimpleCache;

if (class_exists(Standard::class)) {
    /** The standard's own tests. */
    final class SimpleCacheTest extends Standard
    {
        private static ?Server $server = null;

        public static function setUpBeforeClass(): void
        {
            self::$server = new Server('unix');
        }

        public static function tearDownAfterClass(): void
        {
            self::$server = null;
        }

        public function createSimpleCache(): SimpleCache
        {
            return new SimpleCache(new Client(self::$server->address('shm'), allowedClasses: true));
        }
    }
} else {
    final class SimpleCacheTest extends PHPUnit\Framework\TestCase
    {
        public function testStandard(): void
        {
            self::markTestSkipped('php-cache-integration-tests is not installed');
        }
    }
}
