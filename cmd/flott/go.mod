module github.com/flott-dev/flott/cmd/flott

go 1.27

replace github.com/flott-dev/flott => ../..

require (
	github.com/flott-dev/flott v0.0.0
	github.com/rogpeppe/go-internal v1.16.0
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/ulikunitz/xz v0.5.17 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/sys v0.26.0 // indirect
	golang.org/x/tools v0.26.0 // indirect
)
