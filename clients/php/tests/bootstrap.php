<?php

declare(strict_types=1);

require __DIR__ . '/../autoload.php';
require __DIR__ . '/Wait.php';
require __DIR__ . '/Server.php';

// As Debian has them: the standard's own tests, and Symfony.
foreach (['Cache/IntegrationTests', 'Symfony/Component/Cache'] as $package) {
    $file = "/usr/share/php/$package/autoload.php";
    if (is_file($file)) {
        require $file;
    }
}
