package rest

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

// throwable is a failure in an answer. Flink's own clients read the Java object in it, others class and text.
type throwable struct {
	Class      string `json:"class"`
	Stack      string `json:"stack-trace"`
	Serialized string `json:"serialized-throwable"`
}

func newThrowable(class, text string) *throwable {
	return &throwable{class, text, base64.StdEncoding.EncodeToString(javaThrowable(class, text))}
}

// throwableOf names the kind of the error at the end of the chain.
func throwableOf(err error) *throwable { return newThrowable(ErrorClass(err), err.Error()) }

// ErrorClass is what kind of error the last cause of err is: its Go type.
func ErrorClass(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return fmt.Sprintf("%T", err)
		}
		err = next
	}
}

// Bytes of Java's serialization protocol.
const (
	javaMagic        = "\xac\xed\x00\x05"
	javaNull         = 0x70
	javaClass        = 0x72
	javaObject       = 0x73
	javaString       = 0x74
	javaArray        = 0x75
	javaEndBlock     = 0x78
	javaSerializable = 2
	javaOwnWrite     = 3 // serializable, and its class writes itself
)

// javaWriter writes a Java object.
type javaWriter struct{ b []byte }

func (w *javaWriter) utf(s string) {
	b := modifiedUTF8(s)
	w.b = binary.BigEndian.AppendUint16(w.b, uint16(len(b)))
	w.b = append(w.b, b...)
}

// str writes a string object.
func (w *javaWriter) str(s string) {
	w.b = append(w.b, javaString)
	w.utf(s)
}

// javaField is a field that holds an object of that class.
type javaField struct {
	kind        byte
	name, class string
}

func (w *javaWriter) class(name string, uid int64, flags byte, fields ...javaField) {
	w.b = append(w.b, javaClass)
	w.utf(name)
	w.b = binary.BigEndian.AppendUint64(w.b, uint64(uid))
	w.b = append(w.b, flags)
	w.b = binary.BigEndian.AppendUint16(w.b, uint16(len(fields)))
	for _, f := range fields {
		w.b = append(w.b, f.kind)
		w.utf(f.name)
		w.str(f.class)
	}
	w.b = append(w.b, javaEndBlock) // no annotations
}

// javaThrowable is org.apache.flink.util.SerializedThrowable as Java serializes it: its text is both message and stack trace,
// and the original object, which is no Java object, is left out.
func javaThrowable(class, text string) []byte {
	const object = "Ljava/lang/String;"
	w := &javaWriter{b: []byte(javaMagic)}
	w.b = append(w.b, javaObject)
	// Fields come in the order of their names, those that are arrays or objects after primitives.
	w.class("org.apache.flink.util.SerializedThrowable", 7284183123441947635, javaSerializable,
		javaField{'L', "fullStringifiedStackTrace", object}, javaField{'L', "originalErrorClassName", object}, javaField{'[', "serializedException", "[B"})
	w.class("java.lang.Exception", -3387516993124229948, javaSerializable)
	w.class("java.lang.Throwable", -3042686055658047285, javaOwnWrite,
		javaField{'L', "cause", "Ljava/lang/Throwable;"}, javaField{'L', "detailMessage", object},
		javaField{'[', "stackTrace", "[Ljava/lang/StackTraceElement;"}, javaField{'L', "suppressedExceptions", "Ljava/util/List;"})
	w.b = append(w.b, javaNull) // no class above
	// The values, those of the highest class first.
	w.b = append(w.b, javaNull) // cause
	w.str(text)                 // detailMessage
	w.b = append(w.b, javaNull) // stackTrace
	w.b = append(w.b, javaNull, javaEndBlock)
	w.str(text)
	w.str(class)
	w.b = append(w.b, javaArray)
	w.class("[B", -5984413125824719648, javaSerializable)
	w.b = append(w.b, javaNull)
	w.b = binary.BigEndian.AppendUint32(w.b, 0)
	return w.b
}

// modifiedUTF8 is Java's encoding of texts, cut to what its length field holds: NUL in two bytes, and characters beyond 16
// bits as two surrogates of three bytes each.
func modifiedUTF8(s string) []byte {
	const most = 0xffff - 6
	var b []byte
	for _, r := range s {
		if len(b) > most {
			break
		}
		switch {
		case r == 0:
			b = append(b, 0xc0, 0x80)
		case r < 0x80:
			b = append(b, byte(r))
		case r < 0x800:
			b = append(b, 0xc0|byte(r>>6), 0x80|byte(r&0x3f))
		case r < 0x10000:
			b = appendUnit(b, r)
		default:
			high, low := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, high), low)
		}
	}
	return b
}

func appendUnit(b []byte, r rune) []byte {
	return append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
}
