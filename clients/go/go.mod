// The repository's address takes the place of nuthatch.invalid when there is one: docs/releasing.md.
module nuthatch.invalid/clients/go

go 1.23
