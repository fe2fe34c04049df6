package env

import "github.com/flott-dev/flott/internal/jobmanager"

// WatermarkReport, WatermarkInput, WatermarkHolder and HoldReason are the job manager's account of event time.
type (
	WatermarkReport = jobmanager.WatermarkReport
	WatermarkInput  = jobmanager.WatermarkInput
	WatermarkHolder = jobmanager.WatermarkHolder
	HoldReason      = jobmanager.HoldReason
)

// The reasons why somebody holds event time back.
const (
	HeldBefore            = jobmanager.HeldBefore
	HeldWithoutElements   = jobmanager.HeldWithoutElements
	HeldWithoutStrategy   = jobmanager.HeldWithoutStrategy
	HeldWithoutWatermarks = jobmanager.HeldWithoutWatermarks
	HeldBehind            = jobmanager.HeldBehind
	HeldInside            = jobmanager.HeldInside
	HeldOnTheWay          = jobmanager.HeldOnTheWay
)
