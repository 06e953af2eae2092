package evidenceprocessor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
)

// currencies are the codes of ISO 4217 by their number of decimal places. A
// code that does not stand here is an error, not a guess: a wrong guess is
// wrong by a factor of a hundred.
var currencies = func() map[string]int {
	places := map[string]int{}
	for n, codes := range map[int]string{
		0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
		2: `AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF
			CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ
			GYD HKD HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD
			MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD
			RUB SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH
			USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG ZWL`,
		3: "BHD IQD JOD KWD LYD OMR TND",
		4: "CLF UYW",
	} {
		for code := range strings.FieldsSeq(codes) {
			places[code] = n
		}
	}
	return places
}()

// conventions are where a sender's minor units differ from ISO 4217.
var conventions = map[string]map[string]int{
	"iso": nil,
	// Stripe kept two places for ISK and UGX when they lost theirs, and has none for MGA.
	"stripe": {"ISK": 2, "UGX": 2, "MGA": 0},
}

var errNoCurrency = errors.New("there is an amount, but no currency to read it in")

// minorUnits turns a whole number of minor units into an exact decimal.
func minorUnits(amount, currency, convention string) (engine.Decimal, error) {
	if currency == "" {
		return engine.Decimal{}, errNoCurrency
	}
	code := strings.ToUpper(currency)
	places, ok := conventions[convention][code]
	if !ok {
		places, ok = currencies[code]
	}
	if !ok {
		return engine.Decimal{}, fmt.Errorf("%.20q is no currency of ISO 4217; convert the amount in the rule", currency)
	}
	whole, ok := engine.ReadDecimal(amount)
	if !ok || strings.ContainsRune(whole.String(), '.') {
		return engine.Decimal{}, fmt.Errorf("%.40q is no whole number of minor units", amount)
	}
	value, ok := engine.ReadDecimal(whole.String() + "e-" + strconv.Itoa(places))
	if !ok {
		return engine.Decimal{}, fmt.Errorf("%.40q is no amount", amount)
	}
	return value, nil
}
