/** One event of the tape, as Flink's own serializer for plain classes likes it: public fields, an empty constructor. */
public class Event {
    public long number;
    public long timeMs;
    public int key;
    public byte kind;

    public Event() {}

    Event(long number, long timeMs, int key, byte kind) {
        this.number = number;
        this.timeMs = timeMs;
        this.key = key;
        this.kind = kind;
    }
}
