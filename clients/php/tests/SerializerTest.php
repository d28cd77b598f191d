<?php

declare(strict_types=1);

use Nuthatch\Client;
use Nuthatch\Exception\SerializationException;
use Nuthatch\IgbinarySerializer;
use Nuthatch\JsonSerializer;
use Nuthatch\PhpSerializer;
use PHPUnit\Framework\TestCase;

/** A class that may be stored, with what serialized objects can have. */
final class Allowed
{
    public mixed $public = 1;
    protected string $protected = 'O:8:"Stranger":0:{}';
    private array $private = ['a' => 1.5, 'E:3:"A:B";' => null];
}

/** One with a form of its own. */
final class Own implements Serializable
{
    public string $text = '';

    public function serialize(): string
    {
        return $this->text;
    }

    public function unserialize(string $data): void
    {
        $this->text = $data;
    }

    public function __serialize(): array
    {
        return [$this->text];
    }

    public function __unserialize(array $data): void
    {
        [$this->text] = $data;
    }
}

/** One whose methods fail. */
final class Failing implements JsonSerializable
{
    public function __serialize(): array
    {
        throw new Error('of the object');
    }

    public function jsonSerialize(): mixed
    {
        throw new Error('of the object');
    }
}

enum Suit: string
{
    case Hearts = 'h';
}

/** One that is never allowed. It tells when one is made. */
final class Stranger
{
    public static int $made = 0;

    public function __wakeup(): void
    {
        self::$made++;
    }

    public function __unserialize(array $data): void
    {
        self::$made++;
    }
}

/** Which values become bytes, and which bytes become values. */
final class SerializerTest extends TestCase
{
    public function testObjectsAreRefusedUnlessTheirClassIsAllowed(): void
    {
        $none = new PhpSerializer();
        $some = new PhpSerializer([Allowed::class, '\\' . strtolower(Own::class), Suit::class]);
        $all = new PhpSerializer(true);
        $own = new Own();
        $own->text = 'O:8:"Stranger":0:{}';
        foreach ([new Allowed(), [1, ['x' => new Allowed()]], $own, [$own, Suit::Hearts, 's'], Suit::Hearts] as $value) {
            $this->refuses(fn () => $none->serialize($value));
            $this->refuses(fn () => $none->unserialize(serialize($value)));
            self::assertEquals($value, $some->unserialize($some->serialize($value)));
            self::assertEquals($value, $all->unserialize($all->serialize($value)));
        }
        $allowed = new Allowed();
        $allowed->public = [new Stranger()];
        foreach ([new Stranger(), [[new Stranger()]], $allowed] as $value) {
            $this->refuses(fn () => $some->serialize($value));
            $this->refuses(fn () => $some->unserialize(serialize($value)));
        }
        self::assertEquals(new Stranger(), $all->unserialize($all->serialize(new Stranger())));
    }

    public function testWhatLooksLikeAnObjectMayBeStored(): void
    {
        $serializer = new PhpSerializer();
        $array = [1];
        $array[] = &$array[0];
        $values = [
            'O:8:"Stranger":0:{}', ['E:3:"A:B";' => 'C:1:"A":0:{}', 's:1:' => "O:1:\0"], [1.5, INF, -0.0, null, true, -7, 'O:'],
            $array, [[[[]]], 'S:'], 'b:0;', false,
        ];
        foreach ($values as $value) {
            self::assertSame($value, $serializer->unserialize($serializer->serialize($value)));
        }
    }

    /** The kind of fault is bytes that this reads in another way than PHP does. */
    public function testObjectsThatHideAreFound(): void
    {
        $serializer = new PhpSerializer([Allowed::class]);
        $stranger = 'O:8:"Stranger":0:{}';
        $hidden = [
            // A string with escapes is longer than it says.
            'a:2:{i:0;S:8:"\73:99:\22aaaa";i:1;' . $stranger . '}',
            'a:2:{i:0;S:1:"\41";i:1;' . $stranger . '}',
            'O:+8:"Stranger":0:{}', 'o:8:"Stranger":0:{}', 'O:08:"Stranger":0:{}', 'O:8:"stranger":0:{}', 'O:9:"\\Stranger":0:{}',
            'C:8:"Stranger":0:{}', 'C:7:"Allowed":2:{}}' . $stranger, 'a:1:{i:0;C:7:"Allowed":0:{}' . $stranger,
            'O:7:"Allowed":1:{s:6:"public";' . $stranger . '}', 'O:7:"Allowed":1:{' . $stranger . 'i:0;}',
            'a:1:{i:0;' . $stranger, 'i:1;' . $stranger, ' ' . $stranger, 'a:+1:{i:0;' . $stranger . '}', 'x' . $stranger,
            'E:10:"Stranger:A";', 'r:1;' . $stranger, 's:99999999999999999999:"' . $stranger, 's:-5:"' . $stranger,
            's:0:"";' . $stranger, 'O:8:"Stranger"', 'O:7:"Allowed', 'O:7:"Allowed":', "O:8:\"Stranger\":0:{}\0",
        ];
        foreach ($hidden as $bytes) {
            Stranger::$made = 0;
            $this->refuses(fn () => $serializer->unserialize($bytes), $bytes);
            self::assertSame(0, Stranger::$made, $bytes);
        }
    }

    /** Bytes at random, made of parts of serialized values: a value or a refusal, and never a stranger. */
    public function testAnyBytesAreAValueOrRefused(): void
    {
        mt_srand($seed = random_int(0, PHP_INT_MAX));
        $parts = [
            'O:8:"Stranger":0:{}', 'O:7:"Allowed":0:{}', 'a:1:{', 'a:2:{', 'i:0;', '}', 's:3:"abc";', 's:12:"', '";', 'S:2:"\41\42";',
            'C:3:"Own":4:{', 'E:11:"Suit:Hearts";', 'b:1;', 'N;', 'd:0.5;', 'R:1;', 'r:2;', ';', '"', ':', '{', '0', 'O:', 's:1',
        ];
        $serializer = new PhpSerializer([Allowed::class, Own::class, Suit::class]);
        Stranger::$made = 0;
        $values = 0;
        for ($round = 0; $round < 20_000; $round++) {
            $bytes = '';
            for ($count = mt_rand(1, 8); $count > 0; $count--) {
                $bytes .= $parts[array_rand($parts)];
            }
            try {
                $serializer->unserialize($bytes);
                $values++;
            } catch (SerializationException) {
                continue;
            }
        }
        self::assertSame(0, Stranger::$made, "seed $seed");
        self::assertGreaterThan(0, $values);
    }

    public function testWhatCannotBeSerializedIsTold(): void
    {
        $cyclic = [1];
        $cyclic['self'] = &$cyclic;
        $closure = fn () => 1;
        $php = new PhpSerializer(true);
        $this->refuses(fn () => $php->serialize($closure));
        $this->refuses(fn () => $php->serialize([[$closure]]));
        $copy = $php->unserialize($php->serialize($cyclic));
        self::assertSame(1, $copy['self']['self'][0]);
        $json = new JsonSerializer();
        foreach ([$cyclic, NAN, "\xff", [fopen('php://memory', 'r')]] as $value) {
            $this->refuses(fn () => $json->serialize($value));
        }
        foreach (['', '{', "\xff", str_repeat('[', 600)] as $bytes) {
            $this->refuses(fn () => $json->unserialize($bytes));
        }
        foreach (['', 'x', 'a:1:{', 'i:1', 'b:0'] as $bytes) {
            $this->refuses(fn () => $php->unserialize($bytes));
        }
        if (extension_loaded('igbinary')) {
            $igbinary = new IgbinarySerializer();
            $this->refuses(fn () => $igbinary->serialize($closure));
            foreach (['', 'x', substr($igbinary->serialize(['abc']), 0, -1)] as $bytes) {
                $this->refuses(fn () => $igbinary->unserialize($bytes));
            }
        }
    }

    public function testValuesOfAnotherSerializerAreTold(): void
    {
        $server = new Server('unix');
        $address = $server->address('unix');
        [$php, $json] = [new Client($address), new Client($address, 'json')];
        $php->set('k', [1]);
        $this->refuses(fn () => $json->get('k'));
        $json->set('k', [1]);
        $this->refuses(fn () => $php->get('k'));
        // Strings and integers are alike for all.
        $php->set('k', 'v');
        self::assertSame('v', $json->get('k'));
        // What others have written with this client's flags.
        $socket = stream_socket_client($address);
        $bytes = serialize(new Stranger());
        fwrite($socket, "set k 64 0 " . strlen($bytes) . "\r\n$bytes\r\n");
        self::assertSame("STORED\r\n", fgets($socket));
        Stranger::$made = 0;
        $this->refuses(fn () => $php->get('k'));
        self::assertSame(0, Stranger::$made);
    }

    private function refuses(callable $call, string $words = ''): void
    {
        try {
            $call();
        } catch (SerializationException $failure) {
            self::assertNotSame('', $failure->getMessage());
            return;
        }
        self::fail("not refused $words");
    }

    /** What an object's own method throws is told as any other reason, also where it is no Exception. */
    public function testObjectsWhoseMethodsFailAreTold(): void
    {
        foreach ([new PhpSerializer(true), new JsonSerializer()] as $serializer) {
            try {
                $serializer->serialize(new Failing());
                self::fail('no failure');
            } catch (SerializationException $failure) {
                self::assertSame('of the object', $failure->getMessage());
            }
        }
    }
}
