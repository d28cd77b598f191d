package nuthatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Typed keeps values of a type, as JSON or by another codec. An encoded value without bytes counts as none: while one computes,
// there is an empty item in the value's place.
type Typed[T any] struct {
	client *Client
	encode func(T) ([]byte, error)
	decode func([]byte) (T, error)
}

// JSON keeps values of a type as JSON.
func JSON[T any](client *Client) Typed[T] {
	return WithCodec(client,
		func(value T) ([]byte, error) { return json.Marshal(value) },
		func(text []byte) (value T, err error) {
			err = json.Unmarshal(text, &value)
			return value, err
		})
}

// WithCodec keeps values of a type as these functions say.
func WithCodec[T any](client *Client, encode func(T) ([]byte, error), decode func([]byte) (T, error)) Typed[T] {
	return Typed[T]{client, encode, decode}
}

// Get returns the value under a key, or ErrNotFound; ErrValue, if it cannot be decoded.
func (t Typed[T]) Get(ctx context.Context, key string) (value T, err error) {
	bytes, err := t.client.Get(ctx, key)
	if err != nil {
		return value, err
	}
	if len(bytes) == 0 {
		return value, ErrNotFound
	}
	return t.decoded(bytes)
}

// GetMulti returns the values under these keys: those that there are, and that can be decoded.
func (t Typed[T]) GetMulti(ctx context.Context, keys []string) (map[string]T, error) {
	found, failed := t.client.GetMulti(ctx, keys)
	values := make(map[string]T, len(found))
	for key, bytes := range found {
		if len(bytes) == 0 {
			continue
		}
		value, err := t.decoded(bytes)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		values[key] = value
	}
	return values, failed
}

// Set stores a value, whatever there was.
func (t Typed[T]) Set(ctx context.Context, key string, value T, lifetime time.Duration) error {
	return t.store(ctx, key, value, lifetime, t.client.Set)
}

// Add stores a value if there is none, or returns ErrNotStored.
func (t Typed[T]) Add(ctx context.Context, key string, value T, lifetime time.Duration) error {
	return t.store(ctx, key, value, lifetime, t.client.Add)
}

// Replace stores a value if there is one, or returns ErrNotStored.
func (t Typed[T]) Replace(ctx context.Context, key string, value T, lifetime time.Duration) error {
	return t.store(ctx, key, value, lifetime, t.client.Replace)
}

// GetOrCompute is [Client.GetOrCompute] for values of the type.
func (t Typed[T]) GetOrCompute(
	ctx context.Context, key string, how Compute, compute func(context.Context) (T, error),
) (value T, err error) {
	bytes, err := t.client.GetOrCompute(ctx, key, how, func(ctx context.Context) ([]byte, error) {
		computed, err := compute(ctx)
		if err != nil {
			return nil, err
		}
		return t.encoded(computed)
	})
	if err != nil {
		return value, err
	}
	return t.decoded(bytes)
}

func (t Typed[T]) store(
	ctx context.Context, key string, value T, lifetime time.Duration,
	how func(context.Context, string, []byte, time.Duration) error,
) error {
	bytes, err := t.encoded(value)
	if err != nil {
		return err
	}
	return how(ctx, key, bytes, lifetime)
}

func (t Typed[T]) encoded(value T) ([]byte, error) {
	bytes, err := t.encode(value)
	if err != nil {
		return nil, &Error{Kind: ErrValue, Detail: fmt.Sprintf("%T: %v", value, err), cause: err}
	}
	return bytes, nil
}

func (t Typed[T]) decoded(bytes []byte) (T, error) {
	value, err := t.decode(bytes)
	if err != nil {
		return value, &Error{Kind: ErrValue, Detail: fmt.Sprintf("%T: %v", value, err), cause: err}
	}
	return value, nil
}
