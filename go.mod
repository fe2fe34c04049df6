module github.com/flott-dev/flott

go 1.27

require (
	github.com/klauspost/compress v1.20.4
	github.com/ulikunitz/xz v0.5.17
	go.yaml.in/yaml/v3 v3.0.6
)
