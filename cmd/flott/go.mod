module github.com/flott-dev/flott/cmd/flott

go 1.27

replace github.com/flott-dev/flott => ../..

require github.com/flott-dev/flott v0.0.0
