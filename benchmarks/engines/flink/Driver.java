import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Scanner;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.cep.CEP;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Lines "api workload windowMs parallelism file" in; for each a line "rows hash seconds cpu-seconds" out.
 *
 * <p>Seconds go from the first event to the last row: the start of Flink's cluster is not in them. The process goes on
 * between lines, so what the compiler learned in one run serves the next.
 */
public final class Driver {
    private Driver() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Scanner words = new Scanner(line);
            String api = words.next();
            String workload = words.next();
            long windowMs = words.nextLong();
            int parallelism = words.nextInt();
            Tape.load(words.nextLine().trim());
            System.out.println("answer " + run(api, workload, windowMs, parallelism));
            System.out.flush();
        }
    }

    private static String run(String api, String workload, long windowMs, int parallelism) throws Exception {
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        environment.getConfig().enableObjectReuse();
        DataStream<Event> events =
                environment.addSource(new Tape(), "tape", TypeInformation.of(Event.class));
        DataStream<long[]> rows =
                api.equals("cep")
                        ? CEP.pattern(events.keyBy(event -> event.key), Patterns.of(workload, windowMs))
                                .inEventTime()
                                .process(Patterns.rows(workload))
                        : Recognize.rows(environment, events, workload, windowMs);
        rows.addSink(Sinks.of(workload, windowMs));
        Answer.clear();
        environment.execute();
        return Answer.told();
    }
}
