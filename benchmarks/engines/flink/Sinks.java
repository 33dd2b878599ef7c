import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;

/** The rows of matches in, the answer out. */
final class Sinks {
    private Sinks() {}

    static RichSinkFunction<long[]> of(String workload, long windowMs) {
        return workload.equals("count") ? new Counts(windowMs) : new Rows();
    }

    static final class Rows extends RichSinkFunction<long[]> {
        @Override
        public void invoke(long[] row, Context context) {
            Answer.add(row);
        }

        @Override
        public void finish() {
            Answer.ended();
        }
    }

    /** Matches as (key, start, end) in, a row (key, end, matches in the window up to then) for each end out. */
    static final class Counts extends RichSinkFunction<long[]> {
        private final long windowMs;
        private transient Map<Long, Window> windows;

        Counts(long windowMs) {
            this.windowMs = windowMs;
        }

        @Override
        public void invoke(long[] match, Context context) {
            if (windows == null) {
                windows = new HashMap<>();
            }
            windows.computeIfAbsent(match[0], Window::new).add(match[1], match[2]);
        }

        @Override
        public void finish() {
            if (windows != null) {
                windows.values().forEach(Window::tell);
            }
            Answer.ended();
        }

        /** The matches of one key by their start; those that end together come together. */
        private final class Window {
            private final long key;
            private final TreeMap<Long, long[]> matches = new TreeMap<>();
            private long lastEndMs = Long.MIN_VALUE;

            Window(long key) {
                this.key = key;
            }

            void add(long startMs, long endMs) {
                if (endMs != lastEndMs) {
                    tell();
                    lastEndMs = endMs;
                }
                matches.computeIfAbsent(startMs, start -> new long[1])[0]++;
            }

            void tell() {
                if (lastEndMs == Long.MIN_VALUE) {
                    return;
                }
                Iterator<Long> starts = matches.keySet().iterator();
                while (starts.hasNext() && starts.next() < lastEndMs - windowMs) {
                    starts.remove();
                }
                long total = 0;
                for (long[] count : matches.values()) {
                    total += count[0];
                }
                Answer.add(new long[] {key, lastEndMs, total});
            }
        }
    }
}
