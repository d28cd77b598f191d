<?php

declare(strict_types=1);

namespace Nuthatch;

use Nuthatch\Exception\SerializationException;

/**
 * PHP's own serialize(). Who can write to the server chooses which objects are made, so none are unless their classes are
 * allowed: an object of another class is refused when it is stored, and when it is read.
 */
final class PhpSerializer implements Serializer
{
    /** Classes as PHP compares them; true: all. */
    private readonly array|bool $allowed;

    /** @param bool|list<class-string> $allowedClasses true: of all classes */
    public function __construct(bool|array $allowedClasses = false)
    {
        $this->allowed = $allowedClasses === true ?: array_map(
            static fn (string $class) => strtolower(ltrim($class, '\\')),
            $allowedClasses ?: []
        );
    }

    public function flags(): int
    {
        return 1 << 6;
    }

    public function serialize(mixed $value): string
    {
        try {
            $bytes = serialize($value);
        } catch (\Throwable $failure) {
            // A closure, say, or an object whose own method fails.
            throw new SerializationException($failure->getMessage(), 0, $failure);
        }
        $this->check($bytes);
        return $bytes;
    }

    public function unserialize(string $bytes): mixed
    {
        if ($bytes === '') {
            // PHP takes it for false.
            throw new SerializationException('no serialized value: no bytes');
        }
        $this->check($bytes);
        return Warnings::thrown(fn () => unserialize($bytes, ['allowed_classes' => $this->allowed]));
    }

    /** @throws SerializationException if there are objects that may not be */
    private function check(string $bytes): void
    {
        if ($this->allowed === true) {
            return;
        }
        foreach (self::classes($bytes) as $class) {
            if (!in_array(strtolower($class), $this->allowed, true)) {
                throw new SerializationException("objects of the class $class are not allowed: see allowedClasses");
            }
        }
    }

    /**
     * The classes of objects and enumerations in serialized bytes, in the order in which they are made. What strings contain
     * is passed over.
     *
     * @return iterable<string>
     */
    private static function classes(string $bytes): iterable
    {
        // Most values have nothing that looks like one.
        if (preg_match('/[OCEoS]:/', $bytes) === 0) {
            return;
        }
        // What has no length; then something with one. serialize() makes no other forms of objects and strings, of which some
        // would be read as something else here than by unserialize().
        $next = '/\G(?:[bidrR]:[^;]*;|N;|a:\d+:\{|[};])*+(?:([sOCE]):(\d{1,10}):")?/';
        for ($at = 0; $at < strlen($bytes); $at += strlen($rest[0])) {
            if (preg_match($next, $bytes, $found, 0, $at) !== 1 || $found[0] === '') {
                throw new SerializationException("no serialized value: byte $at");
            }
            $at += strlen($found[0]);
            $rest = [''];
            if (!isset($found[1])) {
                continue;
            }
            [, $kind, $length] = $found;
            $word = substr($bytes, $at, (int) $length);
            $at += (int) $length + 1;
            if ($kind === 's') {
                continue;
            }
            yield explode(':', $word, 2)[0];
            // How many properties there are; or the object's own bytes; or nothing more.
            if (preg_match('/\G(?::(\d{1,10}):\{|;)/', $bytes, $rest, 0, min($at, strlen($bytes))) !== 1) {
                throw new SerializationException("no serialized value: byte $at");
            }
            $at += $kind === 'C' ? (int) ($rest[1] ?? 0) : 0;
        }
    }
}
