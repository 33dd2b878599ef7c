import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.LongAdder;

/** Result rows in, their number and a hash that does not depend on their order out: the same as in answers.py. */
final class Answer {
    private static final LongAdder ROWS = new LongAdder();
    private static final LongAdder HASH = new LongAdder();

    /** When the last sink of the run had seen everything. */
    static volatile long endedNs;

    static volatile long endedCpuNs;

    private Answer() {}

    static void clear() {
        ROWS.reset();
        HASH.reset();
    }

    static void add(long[] row) {
        long hash = 0;
        for (long value : row) {
            hash = mix(hash + value + 1);
        }
        ROWS.increment();
        HASH.add(hash);
    }

    /** The finalizer of splitmix64. */
    static long mix(long value) {
        value = (value ^ (value >>> 30)) * 0xbf58476d1ce4e5b9L;
        value = (value ^ (value >>> 27)) * 0x94d049bb133111ebL;
        return value ^ (value >>> 31);
    }

    static synchronized void ended() {
        endedNs = System.nanoTime();
        endedCpuNs = cpuNs();
    }

    /** Of all threads of this process. */
    static long cpuNs() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    static String told() {
        double wall = (endedNs - Tape.startedNs) / 1e9;
        double cpu = (endedCpuNs - Tape.startedCpuNs) / 1e9;
        return ROWS.sum() + " " + Long.toUnsignedString(HASH.sum()) + " " + wall + " " + cpu;
    }
}
