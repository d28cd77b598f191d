package nuthatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// What a call can come to, for [errors.Is].
var (
	// ErrNotFound: there is no such item.
	ErrNotFound = errors.New("nuthatch: there is no such item")
	// ErrNotStored: Add found an item, or Replace found none.
	ErrNotStored = errors.New("nuthatch: the item was not stored")
	// ErrChanged: somebody else has changed the item since it was read.
	ErrChanged = errors.New("nuthatch: somebody else has changed the item")
	// ErrNotANumber: the value cannot be incremented.
	ErrNotANumber = errors.New("nuthatch: the value is not a number")

	// ErrKey: the key is empty or too long. Nothing was sent.
	ErrKey = errors.New("invalid key")
	// ErrValue: the value is longer than Options.ValueMax, or a codec failed. Nothing was sent.
	ErrValue = errors.New("invalid value")
	// ErrLifetime: the lifetime is negative. Nothing was sent.
	ErrLifetime = errors.New("negative lifetime")
	// ErrAddress: the address or an option is invalid.
	ErrAddress = errors.New("invalid address")

	// ErrDown: there is no connection, and no attempt to make one for a while. Nothing was sent.
	ErrDown = errors.New("server is down")
	// ErrLost: the connection ended before the reply came.
	ErrLost = errors.New("connection lost")
	// ErrTimeout: the reply did not come in time.
	ErrTimeout = errors.New("no reply in time")
	// ErrFull: as many calls wait already as may wait, and Options.FailWhenFull is set. Nothing was sent.
	ErrFull = errors.New("too many calls wait for this server")
	// ErrRefused: the server refused the request.
	ErrRefused = errors.New("the server refused the request")
	// ErrUnexpected: the server sent what is no reply to the request, and the connection was closed. It comes with ErrLost.
	ErrUnexpected = errors.New("not a reply to this request")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the client is closed")
)

// Error is what a call failed at. errors.Is finds its kind, and the context's error if that was the cause.
type Error struct {
	// Kind is one of the errors above, or context.Canceled.
	Kind error
	// Server is the place of the server that was asked, if one was: HOST:PORT, or the path of a socket.
	Server string
	// Detail has the particulars, in words. It may be empty.
	Detail string
	// MaybeCarriedOut: the request was sent, at least in part, and no reply came.
	MaybeCarriedOut bool
	cause           error
}

func (e *Error) Error() string {
	words := "nuthatch: "
	if e.Server != "" {
		words += e.Server + ": "
	}
	words += e.Kind.Error()
	if e.Detail != "" {
		words += ": " + e.Detail
	}
	if e.MaybeCarriedOut {
		words += "; the request may have been carried out"
	}
	return words
}

// Unwrap returns the kind, and the cause if there is one.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// MaybeCarriedOut says whether a change that failed with this error may have been made: at one server at least, of an error that
// joins those of several.
func MaybeCarriedOut(err error) bool {
	switch some := err.(type) {
	case *Error:
		return some.MaybeCarriedOut
	case interface{ Unwrap() error }:
		return MaybeCarriedOut(some.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(some.Unwrap(), MaybeCarriedOut)
	}
	return false
}

func failure(kind error, detail string) *Error {
	return &Error{Kind: kind, Detail: detail}
}

func unexpected(form string, words ...any) error {
	return fmt.Errorf("%w: %s", ErrUnexpected, fmt.Sprintf(form, words...))
}

// late is the error of a call whose time is over, or whose context has ended.
func late(ctx context.Context, wasSent bool) *Error {
	err := &Error{Kind: ErrTimeout, MaybeCarriedOut: wasSent, cause: context.DeadlineExceeded}
	if ctx.Err() == nil {
		return err
	}
	if err.cause = ctx.Err(); errors.Is(err.cause, context.Canceled) {
		err.Kind = context.Canceled
	}
	// Who has ended the context may have said why.
	if reason := context.Cause(ctx); reason != err.cause {
		err.Detail = reason.Error()
		err.cause = errors.Join(err.cause, reason)
	}
	return err
}

func invalidValue(length, limit int) error {
	return failure(ErrValue, fmt.Sprintf("%d bytes, where at most %d are allowed", length, limit))
}
