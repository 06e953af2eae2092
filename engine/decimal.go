package engine

import (
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Decimal is an exact decimal number (decision D2). The zero value is 0.
// Money is compared and summed with it; binary floating point decides nothing.
type Decimal struct{ d apd.Decimal }

const (
	// maxNumberText bounds what is parsed at all; longer text does not read as a number.
	maxNumberText = 1024
	// MaxDigits is the largest count of significant digits of a number that reads as one (decision D2).
	MaxDigits = 38
	// MaxExponent bounds the decimal exponent of the most significant digit, in both directions (decision D2).
	MaxExponent = 100
)

// ReadDecimal reads text as a number by decision D2: after trimming ASCII
// spaces it matches [+-]?\d+(\.\d+)?([eE][+-]?\d{1,3})?, has at most 38
// significant digits (without leading and trailing zeros), and its most
// significant digit stands between 10^-100 and 10^100. Otherwise the text
// does not read as a number and ok is false.
func ReadDecimal(text string) (value Decimal, ok bool) {
	text = strings.Trim(text, " ")
	if len(text) > maxNumberText || !looksNumeric(text) {
		return Decimal{}, false
	}
	if _, _, err := value.d.SetString(text); err != nil {
		return Decimal{}, false
	}
	value.normalize()
	if !value.withinLimits() {
		return Decimal{}, false
	}
	return value, true
}

// looksNumeric matches the pattern of decision D2 without a regular expression, because it is on the hot path.
func looksNumeric(text string) bool {
	i := 0
	if i < len(text) && (text[i] == '+' || text[i] == '-') {
		i++
	}
	i, ok := digits(text, i)
	if !ok {
		return false
	}
	if i < len(text) && text[i] == '.' {
		if i, ok = digits(text, i+1); !ok {
			return false
		}
	}
	if i == len(text) {
		return true
	}
	if text[i] != 'e' && text[i] != 'E' {
		return false
	}
	i++
	if i < len(text) && (text[i] == '+' || text[i] == '-') {
		i++
	}
	start := i
	i, ok = digits(text, i)
	return ok && i == len(text) && i-start <= 3
}

// digits skips a run of digits from i; ok is false when there is none.
func digits(text string, i int) (end int, ok bool) {
	start := i
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	return i, i > start
}

func (v *Decimal) normalize() {
	v.d.Reduce(&v.d)
	if v.d.IsZero() {
		v.d = apd.Decimal{}
	}
}

func (v *Decimal) withinLimits() bool {
	if v.d.IsZero() {
		return true
	}
	digits := v.d.NumDigits()
	leading := int64(v.d.Exponent) + digits - 1
	return digits <= MaxDigits && leading >= -MaxExponent && leading <= MaxExponent
}

// Cmp is -1, 0 or +1 as v is below, equal to or above other.
func (v Decimal) Cmp(other Decimal) int { return v.d.Cmp(&other.d) }

// Add returns v + other, exactly.
func (v Decimal) Add(other Decimal) Decimal {
	var sum Decimal
	// Precision 0 never rounds, and both exponents are within the limits of D2, so neither call can fail.
	_, _ = apd.BaseContext.Add(&sum.d, &v.d, &other.d)
	sum.normalize()
	return sum
}

// Sub returns v - other, exactly.
func (v Decimal) Sub(other Decimal) Decimal {
	var difference Decimal
	_, _ = apd.BaseContext.Sub(&difference.d, &v.d, &other.d)
	difference.normalize()
	return difference
}

// Abs returns the magnitude of v.
func (v Decimal) Abs() Decimal {
	var magnitude Decimal
	magnitude.d.Abs(&v.d)
	return magnitude
}

// DecimalOf returns an integer as a Decimal.
func DecimalOf(n int64) Decimal {
	var v Decimal
	v.d.SetInt64(n)
	v.normalize()
	return v
}

// String prints the canonical form: plain, without exponent, trailing zeros or -0 (decision D2).
func (v Decimal) String() string { return v.d.Text('f') }

// ExactDecimal reads the canonical form of a result, which may have more
// digits than a number from outside may have.
func ExactDecimal(canonical string) (value Decimal, ok bool) {
	if !looksNumeric(canonical) {
		return Decimal{}, false
	}
	if _, _, err := value.d.SetString(canonical); err != nil {
		return Decimal{}, false
	}
	value.normalize()
	return value, true
}
