"""Laravel's components and Symfony's, as Debian has them."""

import pytest
from programs import HERE, converse, works
from servers import AGAINST_REDIS, server  # noqa: F401

KIND = "all" if AGAINST_REDIS else "plain"
# These versions are older than PHP 8.2, which calls some of what they do deprecated.
PHP = ["php", "-d", "error_reporting=8191"]


def there(path):
    return works("php", "-r", f"exit(file_exists('/usr/share/php/{path}/autoload.php') && extension_loaded('redis') ? 0 : 1);")


@pytest.mark.skipif(not there("Illuminate/Cache"), reason="php-illuminate-cache is not installed")
def test_laravel(server):  # noqa: F811
    converse([*PHP, HERE / "php/laravel.php"], server.port, KIND)


@pytest.mark.skipif(not there("Symfony/Component/Cache"), reason="php-symfony-cache is not installed")
def test_symfony(server):  # noqa: F811
    converse([*PHP, HERE / "php/symfony.php"], server.port, KIND)
