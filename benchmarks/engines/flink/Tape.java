import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;

/** A file of events in, a source that plays them from memory, in order of time, out. */
final class Tape implements SourceFunction<Event> {
    /** Events between two watermarks: often enough that little is held back, rare enough that it costs little. */
    private static final int WATERMARK_EVENTS = 100;

    private static String loadedPath = "";
    private static long[] timesMs;
    private static int[] keys;
    private static byte[] kinds;

    /** When the first event of the run was handed over. Source and sinks live in this process. */
    static volatile long startedNs;

    static volatile long startedCpuNs;

    private volatile boolean running = true;

    /** The file: the number of events, all times, all keys, all classes; little-endian. */
    static void load(String path) throws IOException {
        if (path.equals(loadedPath)) {
            return;
        }
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(path))).order(ByteOrder.LITTLE_ENDIAN);
        int events = (int) bytes.getLong();
        timesMs = new long[events];
        keys = new int[events];
        kinds = new byte[events];
        bytes.asLongBuffer().get(timesMs);
        bytes.position(bytes.position() + 8 * events);
        bytes.asIntBuffer().get(keys);
        bytes.position(bytes.position() + 4 * events);
        bytes.get(kinds);
        loadedPath = path;
    }

    @Override
    public void run(SourceContext<Event> context) {
        startedCpuNs = Answer.cpuNs();
        startedNs = System.nanoTime();
        for (int number = 0; number < timesMs.length && running; number++) {
            Event event = new Event(number, timesMs[number], keys[number], kinds[number]);
            context.collectWithTimestamp(event, event.timeMs);
            if (number % WATERMARK_EVENTS == WATERMARK_EVENTS - 1) {
                context.emitWatermark(new Watermark(event.timeMs));
            }
        }
    }

    @Override
    public void cancel() {
        running = false;
    }
}
