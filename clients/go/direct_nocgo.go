//go:build nuthatch_direct && !cgo

package nuthatch

var _ = the_tag_nuthatch_direct_needs_cgo
