module github.com/flott-dev/flott/cmd/flott

go 1.27

replace github.com/flott-dev/flott => ../..

require github.com/flott-dev/flott v0.0.0

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/ulikunitz/xz v0.5.17 // indirect
)
