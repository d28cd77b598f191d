module nuthatch.invalid/examples/go

go 1.23

require nuthatch.invalid/clients/go v0.0.0

replace nuthatch.invalid/clients/go => ../../clients/go
