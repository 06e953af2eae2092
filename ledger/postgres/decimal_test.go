package postgres

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
)

// numbers draws texts around the border of what reads as a number.
func numbers() *rapid.Generator[string] {
	digits := rapid.Custom(func(t *rapid.T) string {
		zeros := strings.Repeat("0", rapid.IntRange(0, 45).Draw(t, "zeros"))
		middle := rapid.StringMatching(`[0-9]{0,42}`).Draw(t, "middle")
		return rapid.SampledFrom([]string{middle, zeros + middle, middle + zeros, zeros + middle + zeros}).Draw(t, "shape")
	})
	number := rapid.Custom(func(t *rapid.T) string {
		text := rapid.SampledFrom([]string{"", "", "-", "+"}).Draw(t, "sign") + digits.Draw(t, "whole")
		if rapid.Bool().Draw(t, "with a fraction") {
			text += "." + digits.Draw(t, "fraction")
		}
		if rapid.Bool().Draw(t, "with an exponent") {
			text += rapid.StringMatching(`[eE][+-]?[0-9]{0,4}`).Draw(t, "exponent")
		}
		return rapid.SampledFrom([]string{"", "", " ", "  ", "\t"}).Draw(t, "before") + text + rapid.SampledFrom([]string{"", "", " ", "\n"}).Draw(t, "after")
	})
	return rapid.OneOf(number, number, number, rapid.StringMatching(`[ 0-9.eE+-]{0,12}`), rapid.SampledFrom([]string{
		"NaN", "Infinity", "-inf", "0x10", "1_000", "1,000", "true", "null", "", " ", "1e100", "1e101", "9.9e100", "1e-100", "1e-101", "9e-101",
		"0e999", "-0", "-0.0", "٣", "１", "1e+", ".5", "5.", "1 2", strings.Repeat("1", 38), strings.Repeat("1", 39),
		strings.Repeat("0", 1023) + "1", strings.Repeat("0", 1024) + "1", " " + strings.Repeat("0", 1023) + "1 ",
		"0." + strings.Repeat("0", 99) + "1", "0." + strings.Repeat("0", 100) + "1", "1" + strings.Repeat("0", 100), "1" + strings.Repeat("0", 101),
	}))
}

// The function of the schema and the engine read numbers alike, draw by draw.
func TestD02_DecimalReadsLikeTheEngine(t *testing.T) {
	t.Parallel()
	conn := connect(t, migratedURL(t))
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(numbers(), 1, 60).Draw(t, "texts")
		var read []*string
		err := conn.QueryRow(context.Background(), `
			SELECT array_agg(trim_scale(countersign_decimal(n.value))::text ORDER BY n.place)
			FROM unnest($1::text[]) WITH ORDINALITY AS n(value, place)`, texts).Scan(&read)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			want, number := engine.ReadDecimal(text)
			switch {
			case number && (read[i] == nil || *read[i] != want.String()):
				t.Errorf("%q reads as %v, want %s", text, read[i], want)
			case !number && read[i] != nil:
				t.Errorf("%q reads as %s, want no number", text, *read[i])
			}
		}
	})
}
