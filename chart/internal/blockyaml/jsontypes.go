package blockyaml

import (
	"fmt"
	"math"
	"strconv"
)

// ToJSONTypes converts YAML values to the types that decoding from JSON gives: string keys,
// int64 for whole numbers, float64 for others.
func ToJSONTypes(value any) (any, error) {
	switch v := value.(type) {
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, element := range v {
			name, err := toJSONKey(key)
			if err != nil {
				return nil, err
			}
			if out[name], err = ToJSONTypes(element); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = ToJSONTypes(v[i]); err != nil {
				return nil, err
			}
		}
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		return float64(v), nil
	case float64:
		return toJSONNumber(v)
	}
	return value, nil
}

// toJSONNumber is a float as JSON would carry it: 1.0 arrives as the integer 1.
func toJSONNumber(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is not a number that Kubernetes can take", f)
	}
	if n, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
		return n, nil
	}
	return f, nil
}

func toJSONKey(key any) (string, error) {
	switch k := key.(type) {
	case string:
		return k, nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case uint64:
		return strconv.FormatUint(k, 10), nil
	case float64:
		return strconv.FormatFloat(k, 'g', -1, 32), nil
	case bool:
		return strconv.FormatBool(k), nil
	}
	return "", fmt.Errorf("a key is neither text nor a number, but %T", key)
}
