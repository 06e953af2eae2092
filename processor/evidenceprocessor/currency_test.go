package evidenceprocessor

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
)

func TestMinorUnitsByTheCurrencysExponent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ amount, currency, convention, want string }{
		{"18050", "usd", "iso", "180.5"},
		{"-18050", "USD", "iso", "-180.5"},
		{"0", "EUR", "iso", "0"},
		{"5800", "JPY", "iso", "5800"},
		{"5120", "KWD", "iso", "5.12"},
		{"1", "CLF", "iso", "0.0001"},
		{"500", "ISK", "iso", "500"},
		{"500", "ISK", "stripe", "5"},
		{"500", "ugx", "stripe", "5"},
		{"500", "MGA", "iso", "5"},
		{"500", "MGA", "stripe", "500"},
		{"500", "JPY", "stripe", "500"},
		{"12345678901234567890123456789012345678", "USD", "iso", "123456789012345678901234567890123456.78"},
		{"18050.0", "USD", "iso", "180.5"},
		{"1.8e4", "USD", "iso", "180"},
	} {
		got, err := minorUnits(tc.amount, tc.currency, tc.convention)
		if err != nil || got.String() != tc.want {
			t.Errorf("%s %s (%s): %v, %v; want %s", tc.amount, tc.currency, tc.convention, got, err, tc.want)
		}
	}
	for _, tc := range []struct{ amount, currency, want string }{
		{"1", "", "there is an amount, but no currency to read it in"},
		{"1", "XXX", `"XXX" is no currency of ISO 4217; convert the amount in the rule`},
		{"1", "BTC", `"BTC" is no currency of ISO 4217; convert the amount in the rule`},
		{"180.5", "USD", `"180.5" is no whole number of minor units`},
		{"many", "USD", `"many" is no whole number of minor units`},
		{"", "USD", `"" is no whole number of minor units`},
	} {
		if got, err := minorUnits(tc.amount, tc.currency, "iso"); err == nil || err.Error() != tc.want {
			t.Errorf("%s %s: %v, %v; want %s", tc.amount, tc.currency, got, err, tc.want)
		}
	}
}

// TestMinorUnitsAreExact: what went in comes out when it is multiplied again, for any amount and currency.
func TestMinorUnitsAreExact(t *testing.T) {
	t.Parallel()
	codes := ottlvalue.SortedNames(currencies)
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64().Draw(t, "amount")
		code := rapid.SampledFrom(codes).Draw(t, "currency")
		value, err := minorUnits(strconv.FormatInt(amount, 10), code, "iso")
		if err != nil {
			t.Fatal(err)
		}
		scaled := value
		for range currencies[code] {
			sum := engine.Decimal{}
			for range 10 {
				sum = sum.Add(scaled)
			}
			scaled = sum
		}
		if scaled.Cmp(engine.DecimalOf(amount)) != 0 {
			t.Errorf("%d %s: %s", amount, code, value)
		}
		// What an expression hands on is the same number still.
		text, err := ottlvalue.Text(ottlvalue.ComputableNumber(value.String()))
		if err != nil {
			t.Fatal(err)
		}
		if again, ok := engine.ReadDecimal(text); !ok || again.Cmp(value) != 0 {
			t.Errorf("%d %s: %s became %s", amount, code, value, text)
		}
	})
}

func TestCurrenciesAreCodes(t *testing.T) {
	t.Parallel()
	if len(currencies) < 160 {
		t.Errorf("%d currencies", len(currencies))
	}
	for code := range currencies {
		if len(code) != 3 {
			t.Errorf("%q is no code", code)
		}
	}
}
