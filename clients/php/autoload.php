<?php

/**
 * Loads the classes where Composer does not: those of this package, and PSR-16 as Debian has it.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    foreach (['Nuthatch\\' => __DIR__ . '/src/', 'Psr\\SimpleCache\\' => '/usr/share/php/Psr/SimpleCache/'] as $prefix => $folder) {
        $file = $folder . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        if (str_starts_with($class, $prefix) && is_file($file)) {
            require $file;
        }
    }
});
