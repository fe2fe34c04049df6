module github.com/flott-dev/flott

go 1.27
